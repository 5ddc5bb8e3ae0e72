"""What `newfound export` promises: the same ids from files that need neither newfound nor PyTorch."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from newfound.errors import DataError, MissingFileError, SettingsError

pytest.importorskip("onnx", reason="newfound[onnx] is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="newfound[onnx] is not installed")

COSINES = {"dictionary": "prototypes", "centre": True, "threshold": 0.5}
# Small enough numbers that a short stream meets doubt, pairs and second thoughts.
EVIDENCE = {
    "dictionary": "bayesian", "threshold": 0.0, "alone": -40.0, "reconsider_every": 10, "reconsider_at": -30.0,
    "memory": 25, "between": 0.9,
}  # fmt: skip
ROOTED = EVIDENCE | {"power": 0.5}
# Runs a script with everything that it must not need made impossible to import.
_WITHOUT = """
import runpy, sys
for name in ("torch", "torchvision", "timm", "newfound", "scipy", "safetensors"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])  # as Python does for a script
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def stream(tmp_path_factory, picture):
    """Paths of sixty pictures of known and other kinds, of many shapes and some unusual modes."""
    folder = tmp_path_factory.mktemp("stream")
    rng = np.random.default_rng(0)
    paths = []
    for number in range(60):
        image = Image.fromarray(picture(int(rng.integers(0, 5)), 100 + number, 24 + number % 7))
        image = image.resize((24 + number % 7, 24 + (number * 5) % 60))
        if number == 20:
            image = image.resize((20, 150))  # long and thin: its ends are cut off
        if number == 30:
            image.putalpha(120)
        if number == 40:
            image = image.convert("L")
        exif = Image.Exif()
        exif[274] = 6 if number == 50 else 1  # lies on its side
        paths.append(str(folder / f"{number}.png"))
        image.save(paths[-1], exif=exif)
    return paths


@pytest.fixture(scope="module")
def fit_frozen(fit_tiny, pictures):
    def fit(backbone: str = "test_efficientnet", **settings):
        return fit_tiny(pictures(kinds=3), method="frozen", preset="default", backbone=backbone, **settings)

    return fit


def told(folder, paths):
    done = subprocess.run(
        [sys.executable, "-I", "-c", _WITHOUT, str(folder / "discover.py"), *paths], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("backbone", ["test_efficientnet", "test_vit"])
@pytest.mark.parametrize("settings", [COSINES, EVIDENCE, ROOTED], ids=["prototypes", "evidence", "rooted"])
def test_the_script_gives_the_answers_of_newfound_without_newfound(backbone, settings, fit_frozen, stream, tmp_path):
    run = fit_frozen(backbone, **settings)
    written = run.export(tmp_path)
    ours, theirs = run.discoverer().observe(stream), told(tmp_path, stream)
    assert written.unscripted is None
    assert [(a["image"], a["category"], a["name"], a["is_new"]) for a in theirs] == [
        (s.image, s.category, s.name, s.is_new) for s in ours
    ]
    assert [a["score"] for a in theirs] == pytest.approx([s.score for s in ours], rel=1e-2, abs=0.2)
    assert 3 < len({a["category"] for a in theirs}) < 50


def test_a_run_from_before_features_were_rooted_can_be_exported(fit_frozen, stream, tmp_path):
    run = fit_frozen(**EVIDENCE)
    expected = [s.category for s in run.discoverer().observe(stream)]
    del run.known["power"]
    run.export(tmp_path)
    assert [answer["category"] for answer in told(tmp_path, stream)] == expected


def test_the_stream_of_these_tests_meets_second_thoughts_and_doubt(fit_frozen, stream):
    """Else equal ids would say nothing about the parts of the script that handle them."""
    ids = {}
    changes = {"all": {}, "no thoughts": {"reconsider_every": None}, "no doubt": {"alone": None}, "rooted": ROOTED}
    for name, change in changes.items():
        ids[name] = [s.category for s in fit_frozen(**(EVIDENCE | change)).discoverer().observe(stream)]
    assert ids["all"] != ids["no thoughts"]
    assert ids["all"] != ids["no doubt"]
    assert ids["all"] != ids["rooted"]


def test_fixed_prototypes_stay_what_founded_them(fit_frozen, stream, tmp_path):
    answers = {}
    for update in ("fixed", "running"):
        run = fit_frozen(**COSINES | {"update": update, "threshold": 0.7})
        run.export(tmp_path / update)
        answers[update] = [answer["category"] for answer in told(tmp_path / update, stream)]
        assert answers[update] == [s.category for s in run.discoverer().observe(stream)]
    assert answers["fixed"] != answers["running"]


def test_the_encoder_takes_batches_of_any_size_and_gives_our_features(fit_frozen, stream, tmp_path):
    from newfound.images import open_image

    run = fit_frozen(**COSINES, update="fixed")
    run.export(tmp_path)
    pixels = np.stack([run.encoder.views.centre(open_image(path)).numpy() for path in stream[:7]])
    session = onnxruntime.InferenceSession(str(tmp_path / "encoder.onnx"), providers=["CPUExecutionProvider"])
    run.encoder.read_with(None)
    ours = run.encoder.features(stream[:7])
    for count in (1, 2, 7):
        (features,) = session.run(None, {"pixels": pixels[:count]})
        assert (features * ours[:count]).sum(axis=1).min() > 1 - 1e-6


@pytest.mark.parametrize(
    ("method", "settings", "reason"),
    [
        ("frozen", COSINES | {"merge_every": 10}, "merge_every"),
        ("frozen", EVIDENCE | {"concentration": 2.0}, "concentration"),
        ("frozen", COSINES | {"dictionary": "three-way"}, "RuleDictionary"),
    ],
)
def test_where_the_script_would_decide_otherwise_there_is_none(
    method, settings, reason, fit_tiny, pictures, fit_frozen, tmp_path
):
    fit_frozen(**COSINES).export(tmp_path)
    assert (tmp_path / "discover.py").is_file()
    written = fit_tiny(pictures(kinds=3), method=method, preset="default", **settings).export(tmp_path)
    assert reason in written.unscripted
    assert reason in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "discover.py").exists()  # nor one of an earlier export
    assert not (tmp_path / "rule.py").exists()
    assert (tmp_path / "encoder.onnx").is_file()


def test_the_card_names_classes_input_and_precision(fit_frozen, tmp_path):
    fit_frozen(**COSINES).export(tmp_path)
    card = (tmp_path / "README.md").read_text()
    for part in ("`kind0`, `kind1`, `kind2`", "[n, 3, 32, 32]", "float32", "below 0.500", "ids 0 to 2"):
        assert part in card


def test_an_opset_that_cannot_be_is_refused(fit_frozen, tmp_path):
    with pytest.raises(SettingsError, match=r"opset=3.*14 to 20"):
        fit_frozen(**COSINES).export(tmp_path, opset=3)


def test_a_folder_that_cannot_be_made_is_named(fit_frozen, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(DataError, match="file is a file; an export needs a folder"):
        fit_frozen(**COSINES).export(tmp_path / "file")
    with pytest.raises(DataError, match=r"cannot make the folder .*file/deeper"):
        fit_frozen(**COSINES).export(tmp_path / "file" / "deeper")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["settings.json", "known.npz", "discover.py", "rule.py", "README.md"])
def test_a_full_disk_is_an_error_that_names_the_file(name, fit_frozen, tmp_path, monkeypatch):
    monkeypatch.setattr("newfound.files._token", lambda: "1")
    (tmp_path / f"{name}.1.part").symlink_to("/dev/full")  # what is written before it gets its name
    with pytest.raises(DataError, match=f"cannot write .*{name}: No space left"):
        fit_frozen(**COSINES).export(tmp_path)
    assert not (tmp_path / name).exists()


def test_int8_is_smaller_near_and_another_model(fit_frozen, pictures, tmp_path):
    from dataclasses import replace

    from newfound.runtimes import faster

    run = fit_frozen(**COSINES)
    images, _ = pictures(kinds=3)
    run.export(tmp_path / "float32")
    written = run.export(tmp_path / "int8", int8=images)
    assert written.precision == "int8"
    sizes = [(tmp_path / name / "encoder.onnx").stat().st_size for name in ("int8", "float32")]
    assert sizes[0] < 0.7 * sizes[1]
    small = replace(run, encoder=faster(run.encoder, tmp_path / "int8"))
    exact = replace(run, encoder=faster(run.encoder, tmp_path / "float32"))
    assert exact.fingerprint() == run.fingerprint() != small.fingerprint()
    for encoder in (run.encoder, small.encoder):
        encoder.read_with(None)
    cosines = (small.encoder.features(images) * run.encoder.features(images)).sum(axis=1)
    assert 0.9 < cosines.min() < 1 - 1e-7


def test_int8_needs_an_image_that_can_be_read(fit_frozen, tmp_path):
    with pytest.raises(SettingsError, match="none that can be read"):
        fit_frozen(**COSINES).export(tmp_path, int8=[tmp_path / "not-there.png"])


def test_settings_that_are_no_export_are_refused(fit_frozen, tmp_path):
    from newfound.export.archive import read_settings

    with pytest.raises(MissingFileError, match="holds no export"):
        read_settings(tmp_path)
    fit_frozen(**COSINES).export(tmp_path)
    damages = {"{": "damaged", '{"format": 1}': "has no 'encoder'", '{"format": 99}': "newer newfound"}
    for damage, words in damages.items():
        (tmp_path / "settings.json").write_text(damage)
        with pytest.raises(DataError, match=words) as told:
            read_settings(tmp_path)
    assert "damaged" not in str(told.value), "what is newer is whole"


def test_a_page_of_somebody_elses_is_not_replaced(fit_frozen, tmp_path):
    run = fit_frozen(**COSINES)
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(DataError, match=r"README\.md that is not of an export"):
        run.export(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"
    run.export(tmp_path / "own")
    run.export(tmp_path / "own")  # an earlier export is


@pytest.mark.slow
def test_the_script_gives_the_same_answers_with_a_real_vision_transformer(fit_tiny, pictures, stream, tmp_path):
    run = fit_tiny(
        pictures(kinds=3), method="frozen", preset="default", backbone="vit_tiny_patch16_224", weights="random",
        image_size=224, **EVIDENCE,
    )  # fmt: skip
    run.export(tmp_path)
    assert [a["category"] for a in told(tmp_path, stream)] == [s.category for s in run.discoverer().observe(stream)]
