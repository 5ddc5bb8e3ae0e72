"""The demo, end to end and small."""

from __future__ import annotations

import numpy as np
import pytest

import newfound as nf
from newfound import demo
from newfound.datasets import LabelledImages
from newfound.demo import run_demo
from newfound.errors import DataError
from newfound.progress import Reporter


class Listener(Reporter):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NEWFOUND_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def tiny(tiny_weights):
    """Settings with which a demo takes a second or two."""
    name = "test_efficientnet"
    return {"backbone": name, "weights": tiny_weights(name), "image_size": 32, "epochs": 1, "views": 2, "batch_size": 8}


def test_a_folder_becomes_a_report_a_run_and_a_table(write_folder, tmp_path, tiny):
    folder = write_folder(tmp_path / "shapes", kinds=4, each=8)
    (folder / "kind0" / "broken.png").write_bytes(b"not a picture")
    listener = Listener()
    result = run_demo(folder, tmp_path / "out", reporter=listener, **tiny)

    header, *rows = result.table()
    assert [row[0] for row in rows] == ["ltc, default (short)", "closed, default (short)", "frozen, default (short)"]
    assert header[:4] == ("method", "Strict All", "Strict Old", "Strict New")
    assert header[-1] == "categories (really 4)"
    assert all(len(row) == len(header) == 11 for row in rows)
    closed = dict(zip(header, rows[1], strict=True))
    assert closed["Named New"] == "0.0"
    assert closed[header[-1]] == "2"

    assert result.report == tmp_path / "out" / "report.html"
    page = result.report.read_text(encoding="utf-8")
    for section in ("Scores", "Gallery", "Discovered when", "The threshold", "Confusion matrix", "How it was made"):
        assert f"<h2>{section}</h2>" in page
    assert "shapes: 2 classes taught, 2 never seen" in page
    assert any("cannot be read: 1." in line for line in listener.said)

    run = nf.load(tmp_path / "out" / "run")
    assert run.classes == result.run.classes
    assert set(run.classes) < {"kind0", "kind1", "kind2", "kind3"}
    assert run.config["data"]["images"] == 8  # half of the known classes' images
    assert result.as_dict()["run"] == str(tmp_path / "out" / "run")


def test_known_classes_can_be_named_and_a_second_demo_replaces_the_first(pictures, tmp_path, tiny):
    demos = [run_demo(pictures(4, 4), tmp_path / "out", seed=3, known=["kind3", "kind1"], **tiny) for _ in range(2)]
    assert demos[1].run.classes == ["kind1", "kind3"]
    assert demos[0].table() == demos[1].table()


def test_a_demo_with_nothing_unknown_gets_a_clear_error(pictures, tmp_path):
    with pytest.raises(DataError, match="nothing to discover"):
        run_demo(pictures(4, 4), tmp_path / "out", known=[f"kind{i}" for i in range(4)])


def test_fewer_than_four_classes_get_a_clear_error(pictures, tmp_path):
    images, labels = pictures(3, 3)
    with pytest.raises(DataError, match=r"3 classes .* needs 4"):
        run_demo((images, labels), tmp_path / "out")
    listener = Listener()
    with pytest.raises(DataError, match=r"3 classes .* needs 4"):
        run_demo(([*images, images[0]], [*labels, "lonely"]), tmp_path / "out", reporter=listener)
    assert listener.said == ["Classes with a single image are left out: lonely."]


def one_pixel(classes: int, each: int) -> LabelledImages:
    labels = [f"c{i:04}" for i in range(classes) for _ in range(each)]
    return LabelledImages([np.zeros((1, 1), np.uint8)] * len(labels), labels)


@pytest.mark.parametrize(
    ("classes", "each", "drawn_classes", "drawn_each"),
    [(5, 60, 5, 40), (5, 8, 5, 8), (100, 30, 100, 20), (900, 6, 500, 4)],
)
def test_a_large_data_set_is_cut_to_size_and_the_demo_says_so(classes, each, drawn_classes, drawn_each):
    listener = Listener()
    data = one_pixel(classes, each)
    last = data.classes[-1]
    images, notes = demo._usable(data, [last], 0, False, listener)
    assert len(images) <= demo.MAX_IMAGES
    assert len(images.classes) == drawn_classes
    assert set(images.counts().values()) == {drawn_each}
    assert last in images.classes, "a class that was asked for stays"
    assert notes == listener.said
    assert bool(notes) == (len(images) < len(data))


def test_everything_means_everything():
    data = one_pixel(5, 60)
    images, notes = demo._usable(data, [], 0, True, Reporter())
    assert len(images) == len(data)
    assert notes == []


def test_the_digits_are_whole_and_ten():
    digits = demo._digits()
    assert digits.classes == [str(i) for i in range(10)]
    assert len(digits) == 1797
    assert digits.items[0].shape == (8, 8)
    assert digits.items[0].dtype == np.uint8
    assert max(item.max() for item in digits.items) == 255
