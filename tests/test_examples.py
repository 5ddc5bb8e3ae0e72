"""The scripts in examples/ do what their first lines say."""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
from types import ModuleType

import numpy as np
import pytest
from doc_pages import ROOT
from PIL import Image

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_its_first_lines_say_how_to_run_it(path):
    about = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert f"python examples/{path.name}" in about


@pytest.fixture
def cameras(tmp_path, picture):
    """Two cameras; kinds 3 and 4 are new to the run."""
    for camera, kind, number in (("gate", 0, 60), ("gate", 3, 60), ("pond", 3, 61), ("pond", 4, 60)):
        (tmp_path / "cameras" / camera).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(kind, number)).save(tmp_path / "cameras" / camera / f"{kind}-{number}.png")
    (tmp_path / "cameras" / "pond" / "broken.jpg").write_bytes(b"half an image")
    return tmp_path / "cameras"


def test_wildlife_watch_tells_who_came_by_and_calls_out_what_is_new(cameras, run_folder, capsys):
    main = script("wildlife_watch").main
    visits = main([str(run_folder), str(cameras), "--once"])
    assert sum(visits.values()) == 4
    assert visits["gate", "kind0"] == 1
    assert {camera for camera, _ in visits} == {"gate", "pond"}
    told = capsys.readouterr().out
    assert "NEW: nothing like it before" in told
    assert "broken.jpg" not in told, "what may not be complete yet is waited for"
    assert not main([str(run_folder), str(cameras), "--once"]), "nothing is told twice"


def test_wildlife_watch_looks_at_what_megadetector_found(cameras, run_folder):
    frame = {"file": "gate/0-60.png", "detections": [
        {"category": "1", "conf": 0.9, "bbox": [0.0, 0.0, 0.5, 1.0]},
        {"category": "2", "conf": 0.9, "bbox": [0.5, 0.0, 0.5, 1.0]},
    ]}  # fmt: skip
    results = cameras / "results.json"
    results.write_text(json.dumps({"images": [frame], "detection_categories": {"1": "animal", "2": "person"},
                                   "info": {"format_version": "1.3"}}))  # fmt: skip
    visits = script("wildlife_watch").main([str(run_folder), str(cameras), "--megadetector", str(results), "--once"])
    assert [(camera, count) for (camera, _), count in visits.items()] == [("gate", 1)], "the animal, not the person"


@pytest.fixture(scope="module")
def embeddings():
    """The script about embeddings, and what it decides on those it makes up."""
    module = script("own_embeddings")
    return module, module.main([])


def test_own_embeddings_finds_the_classes_that_were_not_taught(embeddings):
    rng = np.random.default_rng(0)
    rng.normal(size=(30, 64))
    truth = rng.integers(0, 30, 400)  # as the script draws them
    known = truth < 20
    for out in embeddings[1].values():
        assert np.mean(out.category[known] == truth[known]) > 0.9
        assert np.mean(out.category[~known] >= 20) > 0.9
        assert 8 <= len(set(out.category[out.category >= 20].tolist())) <= 15, "there are ten"


def test_own_embeddings_reads_files(embeddings, tmp_path, monkeypatch):
    module, _ = embeddings
    features, labels, stream = module.made_up()
    np.savez(tmp_path / "known.npz", features=features, labels=np.array([f"class {k:02}" for k in labels]))
    np.save(tmp_path / "new.npy", stream)
    monkeypatch.setattr(module, "rehearsed", lambda *_: 0.4)
    found = module.main(["--labelled", str(tmp_path / "known.npz"), "--stream", str(tmp_path / "new.npy")])
    for kind, answer in (("prototypes", module.by_prototypes), ("evidence", module.by_evidence)):
        assert np.array_equal(found[kind].category, answer(features, labels, stream, 0.4).category)
    with pytest.raises(SystemExit):
        module.main(["--stream", "new.npy"])


def test_own_embeddings_rehearses_on_the_fewest_samples_and_says_how_many_that_are(embeddings, tmp_path, capsys):
    module, _ = embeddings
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(7, 16))
    np.save(tmp_path / "new.npy", module.embed(rng, centres[rng.integers(0, 7, 40)]))

    def run(classes: int, each: int) -> dict:
        labels = np.repeat(np.arange(classes), each)
        np.savez(tmp_path / "known.npz", features=module.embed(rng, centres[labels]), labels=labels)
        return module.main(["--labelled", str(tmp_path / "known.npz"), "--stream", str(tmp_path / "new.npy")])

    assert all(len(found.category) == 40 for found in run(4, 4).values())
    for classes, each in ((3, 9), (6, 3)):
        with pytest.raises(SystemExit):
            run(classes, each)
        assert "give at least 4 classes of 4 samples" in capsys.readouterr().err


def test_active_naming_settles_all_that_labels_can_settle_with_the_most_worthwhile_first(
    tmp_path, run_folder, picture, capsys
):
    import newfound as nf

    rows = []
    for kind, each in ((0, 2), (3, 6), (4, 2)):
        for number in range(each):
            path = tmp_path / f"{kind}-{number}.png"
            Image.fromarray(picture(kind, 70 + number)).save(path)
            rows.append({"path": path.name, "label": f"kind{kind}"})
    with nf.load(run_folder).discoverer(run_folder / "journal.db") as discoverer:
        discoverer.observe([tmp_path / row["path"] for row in rows])
        found = {c.id: c.count for c in discoverer.categories() if c.origin == "discovered"}
    assert len(found) >= 2
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        table = csv.DictWriter(file, ["path", "label"])
        table.writeheader()
        table.writerows(rows)

    assert script("active_naming").main([str(run_folder), "--answers", str(tmp_path / "labels.csv")]) == 1.0
    first = capsys.readouterr().out.splitlines()[0]
    assert f"({max(found.values())} images)" in first
    with nf.load(run_folder).discoverer(run_folder / "journal.db") as discoverer:
        names = [c.name for c in discoverer.categories() if c.count]
        assert set(names) <= {"kind0", "kind1", "kind2", "kind3", "kind4"}
        assert len(names) == len(set(names)), "categories with one name are one"
