"""Small real parts for the tests of the learning half: tiny pictures, tiny timm models, runs that take a second."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

from newfound.discovery import _compiled

settings.register_profile("newfound", deadline=None)  # the machine may be busy; pytest's timeout guards the rest
settings.load_profile("newfound")

SIZE = 32  # of the images that tiny backbones see
CNN = "test_efficientnet"  # timm's own model for tests: 0.1 million parameters
# A run that creates in every batch, moves its threshold, and still tells all kinds of pictures apart afterwards.
RUN = {"p_gen": 1.0, "lr": 1e-4, "centre": True, "threshold": 0.6}


@pytest.fixture(scope="session", autouse=True)
def _home_stays_clean(tmp_path_factory):
    """The cache of trunk outputs goes to a temporary folder, never to the home of whoever runs the tests."""
    before = os.environ.get("NEWFOUND_CACHE")
    os.environ["NEWFOUND_CACHE"] = str(tmp_path_factory.mktemp("newfound-cache"))
    yield
    if before is None:
        del os.environ["NEWFOUND_CACHE"]
    else:
        os.environ["NEWFOUND_CACHE"] = before


@pytest.fixture(scope="session", autouse=True)
def _one_thread_throughout():
    """Tokens that one test has cached are another's: with as many threads everywhere they are the same bits."""
    with _one_thread():
        yield


@contextmanager
def _one_thread():
    """Models this small lose more by waiting for a second thread than they gain, on a busy machine many times over."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def nothing_compiled_aside(monkeypatch):
    """Memory that is measured is not that of a compiler which a stream of another test has set going."""
    monkeypatch.setattr(_compiled._loader, "_begun", True)
    for thread in threading.enumerate():
        if thread.name == "newfound-compile":
            thread.join()


@pytest.fixture
def one_thread():
    """Torch works on one thread while the test runs."""
    with _one_thread():
        yield


def _picture(kind: int, number: int, size: int = 24) -> np.ndarray:
    """Noisy stripes whose colour, direction and width tell the kind."""
    rng = np.random.default_rng((kind, number))
    y, x = np.mgrid[0:size, 0:size]
    along = (x, y, x + y)[kind % 3]
    stripes = (along // (2 + 2 * (kind % 4))) % 2
    colour = np.array([(230, 40, 40), (40, 220, 60), (50, 60, 235), (225, 215, 40), (210, 60, 220)][kind % 5])
    noise = rng.normal(0, 12, (size, size, 3))
    return np.clip(stripes[..., None] * colour + (1 - stripes[..., None]) * 20 + noise, 0, 255).astype(np.uint8)


@pytest.fixture(scope="session")
def picture():
    """picture(kind, number): an array [24, 24, 3]; the kinds 0 to 4 are easy to tell apart."""
    return _picture


@pytest.fixture(scope="session")
def pictures():
    """pictures(kinds, each): (images, labels) with the labels "kind0", "kind1", ..."""

    def make(kinds: int = 4, each: int = 5) -> tuple[list[np.ndarray], list[str]]:
        pairs = [(kind, number) for kind in range(kinds) for number in range(each)]
        return [_picture(*pair) for pair in pairs], [f"kind{kind}" for kind, _ in pairs]

    return make


@pytest.fixture(scope="session")
def write_folder():
    """write_folder(root, kinds, each): a folder of class folders of PNG files; returns its path."""

    def write(root: Path, kinds: int = 4, each: int = 5) -> Path:
        for kind in range(kinds):
            (root / f"kind{kind}").mkdir(parents=True, exist_ok=True)
            for number in range(each):
                Image.fromarray(_picture(kind, number)).save(root / f"kind{kind}" / f"{number}.png")
        return root

    return write


@pytest.fixture(scope="session")
def tiny_weights(tmp_path_factory):
    """tiny_weights(name): a safetensors file with fixed random weights of a tiny backbone for SIZE pixels."""
    folder = tmp_path_factory.mktemp("weights")

    def path(name: str = CNN) -> str:
        import torch
        from safetensors.torch import save_file

        from newfound import backbone

        file = folder / f"{name}.safetensors"
        if not file.exists():
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(20)
                model = backbone.create(name, weights="random", image_size=SIZE).model
            save_file({key: value.clone() for key, value in model.state_dict().items()}, file)
        return str(file)

    return path


@pytest.fixture(scope="session")
def tiny_backbone(tiny_weights):
    """tiny_backbone(name): a new backbone with those weights."""

    def make(name: str = CNN, **options):
        from newfound import backbone

        return backbone.create(name, weights=tiny_weights(name), image_size=SIZE, **options)

    return make


@pytest.fixture(scope="session")
def fit_tiny(tiny_weights):
    """fit_tiny(data, **options): `newfound.fit` as it runs in under a second; options override its values."""

    def fit(data, **options):
        import newfound as nf

        values = {"backbone": CNN, "image_size": SIZE, "preset": "paper", "short": True} | options
        values.setdefault("weights", tiny_weights(values["backbone"]))
        if values.get("method") != "frozen":
            values = {"epochs": 2, "batch_size": 8, "views": 2} | values
        with _one_thread():
            return nf.fit(data, **values)

    return fit


@pytest.fixture(scope="session")
def _both_runs(fit_tiny, pictures, tmp_path_factory):
    """The same training twice, at the same moment: what other tests leave in the cache is the same for both."""
    folder = tmp_path_factory.mktemp("run") / "saved"
    fit_tiny(pictures(kinds=3), out=folder, **RUN)
    return fit_tiny(pictures(kinds=3), **RUN), folder


@pytest.fixture(scope="session")
def tiny_run(_both_runs):
    """A run in memory that knows kind0, kind1 and kind2; kind3 and kind4 are new to it. Shared: do not change it."""
    return _both_runs[0]


@pytest.fixture(scope="session")
def _saved_run(_both_runs):
    return _both_runs[1]


@pytest.fixture
def run_folder(_saved_run, tmp_path):
    """A copy of a saved run (the one of `tiny_run`), to be damaged at will."""
    return Path(shutil.copytree(_saved_run, tmp_path / "run"))


@pytest.fixture(scope="session")
def tiny_pipeline_folder(tmp_path_factory) -> str:
    """A folder with a tiny Stable Diffusion pipeline of the true classes, as `save_pretrained` writes it."""
    pytest.importorskip("diffusers", reason="newfound[diffusion] is not installed")
    from tiny_diffusion import tiny_pipeline

    folder = tmp_path_factory.mktemp("diffusion")
    tiny_pipeline(folder / "tokenizer").save_pretrained(folder / "pipeline")
    return str(folder / "pipeline")
