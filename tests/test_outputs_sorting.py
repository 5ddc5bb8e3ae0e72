"""Images by category: every one there, under a safe name, and sorting again changes nothing."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from newfound.errors import DataError, SettingsError
from newfound.images import content_hash
from newfound.outputs import LINKS, Sorter
from newfound.outputs.sorting import safe_name


@pytest.fixture
def images(tmp_path):
    """Two different images with the same name."""
    paths = [tmp_path / folder / "x.png" for folder in ("a", "b")]
    for path, colour in zip(paths, ("red", "blue"), strict=True):
        path.parent.mkdir()
        Image.new("RGB", (8, 8), colour).save(path)
    return paths


def put(sorter, path, category=7, name="new-3"):
    return sorter.put(path, str(path), category, name)


@pytest.mark.parametrize("link", LINKS)
def test_an_image_lies_in_its_categorys_folder(images, tmp_path, link):
    target = put(Sorter(tmp_path / "out", link), images[0])
    assert target == tmp_path / "out" / "7-new-3" / "x.png"
    assert target.read_bytes() == images[0].read_bytes()
    assert target.is_symlink() == (link == "symlink")
    assert os.path.samefile(target, images[0]) == (link != "copy")


@pytest.mark.parametrize("link", LINKS)
def test_different_images_of_one_name_are_both_kept_and_sorting_again_changes_nothing(images, tmp_path, link):
    sorter = Sorter(tmp_path / "out", link)
    first = [put(sorter, path) for path in images]
    assert [path.name for path in first] == ["x.png", f"x-{content_hash(images[1])[:8]}.png"]
    again = [put(sorter, path) for path in reversed(images)]
    assert again == first[::-1]
    assert sorted(path.name for path in (tmp_path / "out").rglob("*.png")) == sorted(path.name for path in first)


def test_a_link_from_a_relative_path_leads_to_the_image(images, tmp_path, monkeypatch):
    monkeypatch.chdir(images[0].parent)
    target = Sorter("../out", "symlink").put("x.png", "x.png", 0, "red")
    monkeypatch.chdir(tmp_path.parent)
    assert (tmp_path / "out" / "0-red" / "x.png").read_bytes() == images[0].read_bytes()
    assert target.name == "x.png"


@pytest.mark.parametrize("link", ["symlink", "hard"])
def test_where_no_link_is_possible_a_copy_is_made(images, tmp_path, monkeypatch, link):
    def refuse(*_args, **_options):
        raise OSError(errno.EXDEV, "another device")

    monkeypatch.setattr("os.symlink", refuse)
    monkeypatch.setattr("os.link", refuse)
    target = put(Sorter(tmp_path / "out", link), images[0])
    assert target.read_bytes() == images[0].read_bytes()
    assert not os.path.samefile(target, images[0])


def test_a_frame_is_written_as_png_and_only_once(tmp_path):
    frame, other = Image.new("RGB", (8, 8), "green"), Image.new("RGB", (8, 8), "red")
    sorter = Sorter(tmp_path / "out")
    target = sorter.put(frame, "clips/bird.mp4#t=12.480", 7, "new-3")
    assert target.name == "bird.mp4#t=12.480.png"
    assert Image.open(target).getpixel((0, 0)) == (0, 128, 0)
    assert sorter.put(frame, "clips/bird.mp4#t=12.480", 7, "new-3") == target
    assert sorter.put(other, "clips/bird.mp4#t=12.480", 7, "new-3") != target
    assert len(list((tmp_path / "out" / "7-new-3").iterdir())) == 2


def test_what_is_unlike_any_category_has_a_folder_too(images, tmp_path):
    assert put(Sorter(tmp_path / "out"), images[0], None, None).parent.name == "new"


def test_an_image_that_is_gone_is_a_clear_error_and_leaves_nothing(tmp_path):
    with pytest.raises(DataError, match=r"cannot sort .*none\.png into"):
        put(Sorter(tmp_path / "out"), tmp_path / "none.png")
    assert list((tmp_path / "out" / "7-new-3").iterdir()) == []


def test_an_unknown_way_to_sort_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="'soft'"):
        Sorter(tmp_path, "soft")


@pytest.mark.parametrize(
    ("name", "safe"),
    [("great tit", "great tit"), ("a/b\\c", "a_b_c"), ("..", "_"), ("", "_"), ("nul.txt", "_nul.txt"), ("Ü?", "Ü_")],
)
def test_names_are_made_safe(name, safe):
    assert safe_name(name) == safe


@settings(max_examples=50)
@given(st.text(max_size=300))
def test_every_name_becomes_one_that_file_systems_take(name):
    safe = safe_name(name)
    assert 0 < len(safe.encode("utf-8", "surrogatepass")) <= 121
    assert not set(safe) & set('<>:"/\\|?*\0\n')
    assert safe == safe.rstrip(". ")
    assert safe_name(safe) == safe
