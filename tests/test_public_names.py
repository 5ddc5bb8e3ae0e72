"""Promises of the public names: what DESIGN.md fixes is there, is what it says, and costs nothing to import."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import newfound as nf


def run_python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize(
    "module", ["newfound", "newfound.discovery", "newfound.evaluation", "newfound.images", "newfound.datasets"]
)
def test_importing_the_light_half_does_not_import_torch(module):
    heavy = "{'torch', 'timm', 'torchvision', 'lightning_fabric', 'matplotlib'}"
    assert run_python(f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_a_dictionary_and_a_score_need_no_torch():
    code = (
        "import sys, numpy as np\n"
        "from newfound.discovery import PrototypeDictionary\n"
        "from newfound.evaluation import score\n"
        "out = PrototypeDictionary(np.eye(2), threshold=0.7).observe(np.eye(2))\n"
        "score(['a', 'b'], ['a', 'b'], known=['a', 'b'])\n"
        "print('torch' in sys.modules)"
    )
    assert run_python(code) == "False"


def test_every_public_name_is_there():
    for name in nf.__all__:
        assert getattr(nf, name) is not None, name
    assert set(nf.__all__) <= set(dir(nf))
    wanted = {"fit", "load", "Run", "methods", "creators", "backbones", "__version__"}
    assert wanted <= set(nf.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fti'"):
        nf.fti  # noqa: B018


def test_no_submodule_hides_a_public_function():
    code = (
        "import importlib, pkgutil, newfound as nf\n"
        "for module in pkgutil.walk_packages(nf.__path__, 'newfound.'):\n"
        "    if '__main__' not in module.name: importlib.import_module(module.name)\n"
        "functions = (nf.fit, nf.load, nf.methods, nf.creators, nf.backbones, nf.score)\n"
        "print([f.__name__ for f in functions if callable(f)])"
    )
    assert run_python(code) == "['fit', 'load', 'methods', 'creators', 'backbones', 'score']"


def test_what_can_be_chosen_is_listed_by_name():
    for listing, expected in (
        (nf.methods(), {"ltc", "baseline", "known-hinge", "closed", "frozen"}),
        (nf.creators(), {"mkee", "mixup"}),
        (nf.backbones(), {"tf_efficientnet_lite0", "vit_base_patch16_clip_224.openai", "vit_base_patch16_224.dino"}),
    ):
        assert expected <= set(listing)
        assert all(isinstance(name, str) and about for name, about in listing.items())
        listing.clear()
    assert nf.methods(), "the caller's changes are the caller's own"
    assert nf.creators()
    assert nf.backbones()


def test_fit_takes_what_the_design_says():
    signature = inspect.signature(nf.fit)
    bound = signature.bind(
        "labelled/", method="ltc", backbone="vit_base_patch16_clip_224.openai", out="runs/birds", epochs=None, seed=0
    )
    assert bound.arguments["data"] == "labelled/"
    assert any(p.kind is inspect.Parameter.VAR_KEYWORD for p in signature.parameters.values())


@pytest.mark.usefixtures("one_thread")
def test_the_designs_example_runs(tiny_run, run_folder, picture):
    run = nf.load(run_folder)
    d = run.discoverer()
    images = [picture(kind, 60 + n) for kind in (0, 3, 4) for n in range(2)]
    for s in d.observe(images):
        assert s.image is not None
        assert isinstance(s.category, int)
        assert isinstance(s.name, str)
        assert isinstance(s.is_new, bool)
        assert isinstance(s.score, float)
        assert isinstance(s.cut, float)
    assert len(d.predict(images)) == len(images)
    assert len(d.categories()) == 5
    d.rename(3, "heron")
    d.merge([3, 4])
    assert len(d.categories()) == 4


def test_a_dictionary_takes_embeddings_of_ones_own():
    from newfound.discovery import PrototypeDictionary

    p = PrototypeDictionary(np.eye(3, 4), threshold=0.7)
    out = p.observe(np.eye(4))
    assert out.category.tolist() == [0, 1, 2, 3]
    assert out.created.tolist() == [False, False, False, True]
    assert out.score.tolist() == [1.0, 1.0, 1.0, 0.0]
    assert len(p) == 4
    assert p.predict(-np.eye(4)[:1]).created.tolist() == [True]
    assert len(p) == 4
    assert nf.PrototypeDictionary is PrototypeDictionary


def test_a_score_has_the_fields_of_the_design():
    from newfound.evaluation import score

    r = score(["a", "b", "c"], ["a", "b", 7], known={"a", "b"}, discovered=None, max_clusters=None)
    for protocol in (r.strict, r.greedy, r.named):
        assert (protocol.all, protocol.old, protocol.new) == (1.0, 1.0, 1.0)
    assert r.categories == 3
    assert nf.score is score


def test_every_error_is_a_newfound_error_and_of_its_plain_kind():
    errors = importlib.import_module("newfound.errors")
    kinds = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    assert all(issubclass(cls, nf.NewfoundError) for cls in kinds)
    assert issubclass(errors.MissingFileError, FileNotFoundError)
    assert issubclass(errors.SettingsError, ValueError)
    assert str(errors.MissingFileError("there is no file x")) == "there is no file x"


def test_every_module_says_what_it_is():
    for module in pkgutil.walk_packages(nf.__path__, "newfound."):
        if not module.name.endswith("__main__"):
            assert importlib.import_module(module.name).__doc__, module.name
