"""Images behind URLs, and lists of them."""

from __future__ import annotations

import os
import pickle
import sys
import uuid

import pytest

from newfound.errors import DataError, MissingFileError, SettingsError
from newfound.images import find_images
from newfound.remote_files import find_remote, images_at, is_url, with_lists
from newfound.sources import from_paths


@pytest.fixture
def bucket(write_folder, tmp_path):
    """The address of a bucket in memory with the images of tmp_path/pictures."""
    fsspec = pytest.importorskip("fsspec", reason="newfound[ray] is not installed")
    system = fsspec.filesystem("memory")
    root = f"/{uuid.uuid4().hex}"  # what is in memory is shared by all tests
    system.put(str(write_folder(tmp_path / "pictures", kinds=5, each=2)), root, recursive=True)
    yield f"memory:/{root}"
    system.rm(root, recursive=True)


def names(found) -> list[str]:
    return [os.path.join(*str(file).split("/")[-2:]) for file in found]


def test_a_bucket_holds_the_images_that_its_folder_does_in_the_same_order(bucket, tmp_path):
    assert names(find_remote(bucket)) == names(find_images(tmp_path / "pictures"))
    assert names(find_remote(bucket + "/")) == names(find_images(tmp_path / "pictures"))


def test_hidden_names_and_other_files_are_no_images_of_a_bucket(bucket):
    import fsspec

    for name in (".thumbs/1.png", "kind0/.1.png", "kind0/notes.txt"):
        with fsspec.open(f"{bucket}/{name}", "wb") as file:
            file.write(b"x")
    assert len(find_remote(bucket)) == 10
    assert len(find_remote(f"{bucket}/kind0/*")) == 2


def test_a_pattern_chooses(bucket):
    assert names(find_remote(f"{bucket}/*/1.png")) == [os.path.join(f"kind{k}", "1.png") for k in range(5)]
    assert names(find_remote(f"{bucket}/kind[34]/")) == names(find_remote(bucket))[6:]
    assert names(find_remote(f"{bucket}/kind2/?.png")) == names(find_remote(bucket))[4:6]
    assert find_remote(f"{bucket}/*/9.png") == []


def test_wildcards_in_a_name_that_is_there_are_letters(bucket):
    import fsspec

    fsspec.filesystem("memory").copy(f"{bucket}/kind0/0.png", f"{bucket}/kind[0]/7.png")
    assert names(find_remote(f"{bucket}/kind[0]")) == [os.path.join("kind[0]", "7.png")]


def test_a_url_of_an_image_is_not_asked_for_before_it_is_read(bucket):
    (file,) = find_remote(f"{bucket}/nowhere.png")
    with pytest.raises(OSError, match="there is no such file"):
        file.read()


def test_where_nothing_is_is_said_so(bucket):
    with pytest.raises(MissingFileError, match="there is nothing at memory://"):
        find_remote(f"{bucket}/nowhere")


def test_a_protocol_that_there_is_not_is_a_wrong_setting():
    pytest.importorskip("fsspec", reason="newfound[ray] is not installed")
    with pytest.raises(SettingsError, match="gopher://birds cannot be opened"):
        find_remote("gopher://birds")


def test_a_store_that_fails_gives_an_error_in_our_words(bucket, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("503 slow down")

    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.find", fail)
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.cat_file", fail)
    with pytest.raises(DataError, match=r"cannot list memory://.*: 503 slow down"):
        find_remote(bucket)
    with pytest.raises(OSError, match="503 slow down"):
        find_remote(f"{bucket}/kind0/0.png")[0].read()


def test_without_fsspec_a_url_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(SettingsError, match=r'pip install "newfound\[ray\]"'):
        find_remote("s3://birds")


def test_a_remote_file_survives_being_sent(bucket):
    file = find_remote(bucket)[0]
    assert pickle.loads(pickle.dumps(file)).read() == file.read() != b""


def test_an_archive_in_a_bucket_is_not_lost_on_the_way(bucket, tmp_path):
    import shutil

    import fsspec

    archive = shutil.make_archive(str(tmp_path / "all"), "zip", tmp_path / "pictures")
    fsspec.filesystem("memory").put(archive, f"{bucket}/all.zip")
    found = find_remote(f"zip://kind1::{bucket}/all.zip")
    assert len(found) == 2
    assert pickle.loads(pickle.dumps(found[0])).read() == (tmp_path / "pictures" / "kind1" / "0.png").read_bytes()


@pytest.mark.parametrize("path", ["a.jpg", "/a/b", "C:\\a", "a:b.jpg", "@list", "-", "a::b.jpg", ""])
def test_paths_are_no_urls(path):
    assert not is_url(path)


@pytest.mark.parametrize(
    "url", ["s3://a/*.jpg", "file:///a", "HTTPS://a/b.png", "simplecache::s3://a", "zip://*::s3://a"]
)
def test_urls_are_urls(url):
    assert is_url(url)


def test_discovering_in_a_bucket_equals_discovering_in_its_folder(bucket, tiny_run, tmp_path):
    here = tiny_run.discoverer().observe(tmp_path / "pictures")
    there = tiny_run.discoverer()
    images = [item.image for item in from_paths([bucket, f"{bucket}/gone.png"])]
    found = there.observe(images)
    assert [s.category for s in found[:-1]] == [s.category for s in here]
    assert found[-1].error == f"cannot read {images[-1]}: there is no such file"
    assert [s.image for s in there.sightings()] == images[:-1]
    assert [row.image for block in there.keeper.journal.stream(0) for row in block] == [str(i) for i in images[:-1]]


def test_answers_are_named_by_url_and_what_cannot_be_listed_is_an_item_with_its_error(bucket):
    items = list(from_paths([f"{bucket}/nowhere", f"{bucket}/kind2"], {"id": 7}))
    assert [item.error is None for item in items] == [False, True, True]
    assert [item.name for item in items[1:]] == [str(file) for file in find_remote(f"{bucket}/kind2")]
    assert all(item.name.startswith("memory://") and item.extra == {"id": 7} for item in items[1:])


def test_a_list_stands_for_its_lines(tmp_path):
    (tmp_path / "list.txt").write_bytes("\ufeffa.jpg\r\n\n  \ns3://b/ü c.png\nd\n".encode() + b"\xff.png")
    listed = list(with_lists(["x.jpg", f"@{tmp_path / 'list.txt'}", "y"]))
    assert listed == ["x.jpg", "a.jpg", "s3://b/ü c.png", "d", os.fsdecode(b"\xff.png"), "y"]


def test_a_file_whose_name_starts_like_a_list_is_itself_and_a_list_that_is_not_there_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "@1.png").touch()
    (tmp_path / "1.png").touch()
    assert list(with_lists(["@1.png", "@gone.txt"])) == ["@1.png", "@gone.txt"]


def test_paths_are_listed_as_ever(write_folder, tmp_path):
    assert list(images_at(str(write_folder(tmp_path)))) == find_images(tmp_path)
