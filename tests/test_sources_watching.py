"""A watched folder gives every image once, when it is complete, and an error only for what stays unreadable."""

from __future__ import annotations

import os

import pytest
from PIL import Image

from newfound.errors import DataError, ImageError, MissingFileError
from newfound.images import open_image
from newfound.sources import FolderWatch, Stop, watch


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


@pytest.fixture
def watched(folder, clock):
    return FolderWatch([folder], settle=1.0, give_up=30.0, clock=clock)


@pytest.fixture
def after(watched, clock):
    """after(seconds): the names that a poll gives so much later."""

    def poll(seconds: float) -> list[str]:
        clock.now += seconds
        return [os.path.basename(item.name) for item in watched.poll()]

    return poll


def save(path, colour="red"):
    Image.new("RGB", (8, 8), colour).save(path)
    return path


def test_an_image_is_given_once_and_only_after_it_has_settled(folder, after):
    save(folder / "b.png")
    save(folder / "a.png")
    assert after(0) == []
    assert after(0.9) == []
    assert after(0.1) == ["a.png", "b.png"]
    assert after(1) == []
    save(folder / "c.png")
    assert after(1) == []
    assert after(1) == ["c.png"]
    assert after(100) == []


def test_a_file_that_grows_is_waited_for(folder, after):
    whole = save(folder.parent / "whole.png").read_bytes()
    with (folder / "a.png").open("wb") as file:
        for end in range(10, len(whole), 20):
            file.write(whole[end - 10 : end + 10])
            file.flush()
            assert after(0.9) == []
    assert after(0.9) == []
    assert after(1.0) == ["a.png"]


@pytest.mark.parametrize("name", ["a.png.part", "a.tmp", "a.jpg.crdownload", ".a.png", "notes.txt"])
def test_names_of_files_under_way_are_left_alone_until_they_are_renamed(folder, after, name):
    save(folder / "a.png").rename(folder / name)
    assert after(0) == after(5) == []
    (folder / name).rename(folder / "a.png")
    assert after(0) == []
    assert after(1) == ["a.png"]


def test_a_file_that_is_replaced_is_given_again(folder, after):
    save(folder / "latest.png")
    after(0)
    assert after(1) == ["latest.png"]
    os.utime(save(folder / "latest.png", "blue"), ns=(1, 1))
    assert after(1) == []
    assert after(1) == ["latest.png"]


def test_of_many_files_one_that_is_replaced_is_noticed_after_some_polls(folder, after, monkeypatch):
    monkeypatch.setattr("newfound.sources.watching._CHECKS", 5)
    for number in range(40):
        (folder / f"{number}.png").touch()
    after(0)
    assert len(after(1)) == 40
    save(folder / "7.png")
    shares = 1 + 40 // 5  # polls until each file had its turn
    assert [name for _ in range(shares + 1) for name in after(1)] == ["7.png"]
    assert [name for _ in range(shares + 1) for name in after(1)] == []


def test_what_cannot_be_read_is_tried_when_it_changes_and_an_error_after_thirty_seconds(folder, watched, clock):
    def attempt() -> str:
        """What becomes of the one file: given and read, put off, or an error."""
        items = watched.poll()
        if not items:
            return "nothing"
        try:
            open_image(items[0].image)
        except ImageError:
            return "later" if items[0].try_later(items[0]) else "error"
        return "read"

    whole = save(folder.parent / "whole.png").read_bytes()
    half = folder / "a.png"
    half.write_bytes(whole[:45])
    told = []
    for second in (0, 1, 2, 20, 29.9):
        clock.now = second
        told.append(attempt())
    assert told == ["nothing", "later", "nothing", "nothing", "nothing"]
    assert watched.waiting == 1
    half.write_bytes(whole[:50])  # still alive: the thirty seconds begin anew
    for second in (30, 31, 59.9, 60, 61, 200):
        clock.now = second
        told.append(attempt())
    assert told[5:] == ["nothing", "later", "nothing", "error", "nothing", "nothing"]
    assert watched.waiting == 0
    half.write_bytes(whole)
    clock.now = 201
    assert attempt() == "nothing"
    clock.now = 202
    assert attempt() == "read"


def test_a_picture_of_a_kind_that_cannot_be_read_is_given_and_not_passed_over(folder, after):
    (folder / "phone.HEIC").write_bytes(b"\0\0\0\x18ftypheic....")
    after(0)
    assert after(1) == ["phone.HEIC"]


def test_a_file_that_went_away_before_it_was_read_is_no_error(folder, watched, clock):
    path = save(folder / "a.png")
    watched.poll()
    clock.now = 1
    (item,) = watched.poll()
    path.unlink()
    watched.poll()
    assert item.try_later(item)


def test_a_link_that_leads_nowhere_is_waited_for_and_then_an_error(folder, watched, clock):
    (folder / "gone.png").symlink_to(folder.parent / "nowhere.png")
    (folder / "self.png").symlink_to("self.png")
    told = {}
    for second in (0, 1, 2, 30, 31, 60):
        clock.now = second
        told[second] = [(os.path.basename(item.name), item.try_later(item)) for item in watched.poll()]
    assert told.pop(1) == [("gone.png", True), ("self.png", True)]
    assert told.pop(30) == [("gone.png", False), ("self.png", False)]
    assert not any(told.values())
    save(folder.parent / "nowhere.png")
    clock.now = 61
    assert watched.poll() == []
    clock.now = 62
    assert [os.path.basename(item.name) for item in watched.poll()] == ["gone.png"]


def test_what_a_link_led_to_may_go_once_it_has_been_read(folder, after):
    target = save(folder.parent / "there.png")
    (folder / "link.png").symlink_to(target)
    after(0)
    assert after(1) == ["link.png"]
    target.unlink()
    assert after(1) == after(1) == after(100) == []


def test_folders_below_and_links_are_looked_into_but_none_twice(folder, after):
    (folder / "deep" / "er").mkdir(parents=True)
    save(folder / "deep" / "er" / "a.png")
    (folder / "loop").symlink_to(folder)
    after(0)
    assert after(1) == ["a.png"]
    (folder / "late").mkdir()
    save(folder / "late" / "b.png")
    after(1)
    assert after(1) == ["b.png"]


def test_a_folder_that_is_out_of_reach_for_a_while_is_told_once_and_its_images_are_not_given_again(folder, after):
    save(folder / "a.png")
    after(0)
    assert after(1) == ["a.png"]
    folder.rename(folder.parent / "away")
    assert after(1) == ["in"]  # the folder itself, with the error
    assert after(1) == []
    (folder.parent / "away").rename(folder)
    assert after(1) == after(1) == []


def test_only_folders_that_are_there_can_be_watched(folder):
    with pytest.raises(MissingFileError, match="there is no folder"):
        FolderWatch([folder / "none"])
    with pytest.raises(DataError, match="only folders can be watched"):
        FolderWatch([save(folder / "a.png")])


def test_files_that_were_given_are_not_opened_again(folder, watched, clock, monkeypatch):
    for number in range(200):
        (folder / f"{number}.png").touch()
    watched.poll()
    clock.now = 1
    assert len(watched.poll()) == 200

    def refuse(*_args, **_options):
        raise AssertionError("a poll opens no file")

    for name in ("builtins.open", "io.open", "os.open"):
        monkeypatch.setattr(name, refuse)
    clock.now = 2
    assert watched.poll() == []


def test_watching_ends_when_asked(folder):
    save(folder / "a.png")
    with Stop() as stop:
        for batch in watch(FolderWatch([folder], settle=0), stop):
            assert [item.name for item in batch] == [str(folder / "a.png")]
            stop.asked = True
    assert stop.asked
