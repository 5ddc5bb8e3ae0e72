"""Promises of newfound._oddities: what may not be meant is said, what is usual is not."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from PIL import Image

from newfound._oddities import oddities
from newfound.datasets import load_dataset


def plant(root, *names):
    """Images of one size in bytes, all different."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.frombuffer(name.ljust(48)[:48].encode(), np.uint8).reshape(4, 4, 3)).save(path, "BMP")


def test_a_usual_data_set_gives_no_remark(tmp_path):
    plant(tmp_path, "cat/1.bmp", "cat/2.bmp", "dog/1.bmp", "dog/deep/2.bmp")
    assert oddities(load_dataset(tmp_path)) == []


@pytest.mark.parametrize("names", [("cat/2023/1.bmp", "dog/2023/1.bmp"), ("cat/a/1.bmp", "cat/b/2.bmp", "dog/1.bmp")])
def test_folders_in_class_folders_that_cannot_be_classes_give_no_remark(tmp_path, names):
    plant(tmp_path, *names)
    assert oddities(load_dataset(tmp_path)) == []


def test_folders_in_folders_that_may_be_the_classes_are_told(tmp_path):
    plant(tmp_path, "train/cat/1.bmp", "train/dog/1.bmp", "val/cat/2.bmp", "val/dog/2.bmp")
    (told,) = oddities(load_dataset(tmp_path))
    assert "train, val" in told
    assert "train/cat, train/dog, val/cat, ..." in told
    assert "CSV" in told


def test_images_beside_class_folders_and_empty_class_folders_are_told(tmp_path):
    plant(tmp_path, "cat/1.bmp", "dog/1.bmp", "loose.bmp")
    (tmp_path / "owl").mkdir()
    stray, empty = oddities(load_dataset(tmp_path))
    assert stray.startswith("1 image lies in")
    assert empty == "1 class folder has no image: owl"


def test_a_class_folder_that_is_a_link_to_nowhere_is_told(tmp_path):
    plant(tmp_path, "cat/1.bmp", "dog/1.bmp")
    (tmp_path / "owl").symlink_to(tmp_path / "nowhere")
    (told,) = oddities(load_dataset(tmp_path))
    assert told == f"1 link leads nowhere in {tmp_path}, where a class folder could be: owl"


def test_an_image_with_two_labels_is_told_with_both_places(tmp_path):
    plant(tmp_path, "cat/1.bmp", "cat/2.bmp", "dog/1.bmp")
    shutil.copy(tmp_path / "cat/2.bmp", tmp_path / "dog/same.bmp")
    (told,) = oddities(load_dataset(tmp_path))
    assert f"{tmp_path / 'cat/2.bmp'} is 'cat'" in told
    assert f"{tmp_path / 'dog/same.bmp'}, which is equal, is 'dog'" in told


def test_all_images_with_two_labels_are_counted_each_once(tmp_path):
    plant(tmp_path, "cat/1.bmp", "cat/2.bmp", "cat/3.bmp", "dog/1.bmp", "owl/1.bmp")
    shutil.copy(tmp_path / "cat/1.bmp", tmp_path / "dog/same.bmp")
    shutil.copy(tmp_path / "cat/1.bmp", tmp_path / "owl/same.bmp")
    shutil.copy(tmp_path / "cat/2.bmp", tmp_path / "owl/other.bmp")
    (told,) = oddities(load_dataset(tmp_path))
    assert told.startswith(f"2 images have two labels; the first: {tmp_path / 'cat/1.bmp'} is 'cat'")


def test_classes_that_differ_only_in_capital_letters_are_told(tmp_path):
    plant(tmp_path, "1.bmp", "2.bmp", "3.bmp")
    (tmp_path / "a.csv").write_text("1.bmp,Grey Heron\n2.bmp,grey heron\n3.bmp,owl\n")
    (told,) = oddities(load_dataset(tmp_path / "a.csv"))
    assert told.endswith("capital letters are taken as different ones: Grey Heron and grey heron")


def test_copies_within_a_class_and_images_in_memory_give_no_remark(tmp_path):
    plant(tmp_path, "cat/1.bmp", "dog/1.bmp")
    shutil.copy(tmp_path / "cat/1.bmp", tmp_path / "cat/copy.bmp")
    assert oddities(load_dataset(tmp_path)) == []
    picture = np.zeros((4, 4, 3), np.uint8)
    assert oddities(load_dataset([picture, picture], labels=["a", "b"])) == []
