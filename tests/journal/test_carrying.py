"""Promises of carrying a journal to another model: images behind URLs, a few rows in memory, all or nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image as PictureFile
from test_review import CLASSES, E, images, keeper_of, move, plain, rename

from newfound import carrying
from newfound.carrying import carry, continued
from newfound.curator import Curator
from newfound.datasets import LabelledImages
from newfound.discovery import PrototypeDictionary
from newfound.errors import JournalError, SettingsError
from newfound.images import content_of, open_image
from newfound.journal import Journal, Writer, editing
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.keeper import Image, Keeper
from newfound.journal.replaying import verify

fsspec = pytest.importorskip("fsspec")


class FirstByte:
    """An encoder of files, wherever they are: their first byte says which direction the feature has."""

    def readable(self, sources):
        contents = [source.read() if hasattr(source, "read") else Path(source).read_bytes() for source in sources]
        features = np.array([E[content[0]] for content in contents], np.float32)
        return features.reshape(-1, 8), list(range(len(contents))), {}


def run() -> SimpleNamespace:
    return SimpleNamespace(
        classes=CLASSES, encoder=FirstByte(), dictionary=plain, fingerprint=lambda: "another model", about=dict
    )


def disturbed(turn: int, happens: Callable[[], object]) -> SimpleNamespace:
    """A run that something happens to when its encoder is given images for the ``turn``-th time."""
    encoder, given = FirstByte(), []

    def readable(sources):
        given.append(len(sources))
        if len(given) == turn:
            happens()
        return encoder.readable(sources)

    other = run()
    other.encoder = SimpleNamespace(readable=readable)
    return other


@pytest.fixture
def bucket():
    """bucket(name, content): the URL of a file in a bucket, which is memory."""
    system = fsspec.filesystem("memory")

    def put(name: str, content: bytes) -> str:
        system.pipe_file(f"/bucket/{name}", content)
        return f"memory://bucket/{name}"

    yield put
    if system.exists("/bucket"):
        system.rm("/bucket", recursive=True)


def test_images_behind_urls_are_encoded_again(bucket):
    urls = [bucket(f"{n}.jpg", bytes([kind, n])) for n, kind in enumerate((3, 3, 4, 5))]
    contents = [content_of(bytes([kind, n])) for n, kind in enumerate((3, 3, 4, 5))]
    old, new = keeper_of(), Journal.open(None)
    old.enter([Image(url, content) for url, content in zip(urls, contents, strict=True)], E[[3, 3, 4, 5]])
    bucket("2.jpg", b"\4 another picture")
    fsspec.filesystem("memory").rm("/bucket/3.jpg")
    assert carry(old.journal, new, run()).missing == urls[2:], "one has changed, one is gone"
    assert [row.feature is not None for row in new.sightings(range(4))] == [True, True, False, False]
    assert Keeper(new).standing([0, 1, 2, 3]) == [3, 3, 4, 5]


def test_a_file_whose_name_is_no_text_is_found_again(tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jpg")
    Path(path).write_bytes(b"\3 a picture")
    old, new = keeper_of(), Journal.open(None)
    old.enter([Image(path, content_of(path))], E[[3]])
    assert carry(old.journal, new, run()).missing == []
    assert new.sightings([0])[0].feature is not None
    rename(old, 3, "bittern")
    old.edit(lambda book, _: editing.flag(book.catalogue, [3], "promoted", True))
    data, missing = continued(LabelledImages([bytes(9)], ["owl"]), old.journal)
    assert (data.items[1:], missing) == ([path], [])


def test_a_picture_without_a_name_is_missed_by_its_number():
    old, new = keeper_of(), Journal.open(None)
    old.enter([Image(None)], E[[3]])
    assert carry(old.journal, new, run()).missing == ["sighting 0"]


def test_a_protocol_that_is_not_installed_is_told_and_no_image_counts_as_gone():
    old, new = keeper_of(), Journal.open(None)
    old.enter([Image("nosuch://bucket/1.jpg", bytes(16))], E[[3]])
    with pytest.raises(SettingsError, match="nosuch"):
        carry(old.journal, new, run())
    assert new.empty


def test_what_was_promoted_is_taught_from_images_behind_urls(bucket, picture, tmp_path):
    file = tmp_path / "heron.png"
    PictureFile.fromarray(picture(0, 0)).save(file)
    url = bucket("heron.png", file.read_bytes())
    keeper = keeper_of()
    keeper.enter([Image(url, content_of(file))], E[[3]])
    rename(keeper, 3, "bittern")
    keeper.edit(lambda book, _: editing.flag(book.catalogue, [3], "promoted", True))
    data, missing = continued(LabelledImages([str(file)], ["owl"]), keeper.journal)
    assert (list(data.labels), missing) == (["owl", "bittern"], [])
    assert open_image(data.items[1]).tobytes() == open_image(file).tobytes()


def test_an_image_is_named_by_its_url(bucket):
    keeper = keeper_of()
    keeper.enter([Image("memory://bucket/1.jpg", bytes(16))], E[[3]])
    curator = Curator(keeper.journal)
    curator.forget("memory://bucket/1.jpg")
    assert keeper.journal.sightings([0])[0].forgotten


@pytest.fixture
def kept(tmp_path):
    """A journal of ten files, one of them moved and one forgotten, with names and events."""
    keeper = keeper_of()
    for n in range(10):
        (tmp_path / f"{n}.jpg").write_bytes(bytes([3 + n % 4, n]))
    files = sorted(tmp_path.iterdir())
    keeper.enter([Image(str(file), content_of(file)) for file in files], E[[3 + n % 4 for n in range(10)]])
    move(keeper, [4], 5)
    for n in range(5):
        rename(keeper, 3, f"bittern {n}")
    keeper.forget([7])
    return keeper


def test_a_journal_is_carried_with_a_few_rows_in_memory(kept, monkeypatch):
    whole, pieces, appended = Journal.open(None), Journal.open(None), []
    append = Writer.append

    def counting(writer, sightings, events=(), places=None):
        appended.append(max(len(sightings), len(events), len(places or ())))
        append(writer, sightings, events, places)

    carry(kept.journal, whole, run())
    monkeypatch.setattr(carrying, "_CHUNK", 3)
    monkeypatch.setattr(Writer, "append", counting)
    carry(kept.journal, pieces, run())
    assert max(appended) == 3
    assert pieces.genesis() == whole.genesis()
    assert [*pieces.stream()] == [*whole.stream()]
    carried = kept.journal.position().events
    assert pieces.events(limit=carried) == whole.events(limit=carried) == kept.journal.events()
    assert [event.kind for event in pieces.events(since=carried)] == ["carried"]
    assert pieces.pinned(range(10)) == whole.pinned(range(10)) == {4}
    assert pieces.place(range(10)) == whole.place(range(10))
    assert Keeper(pieces).standing(range(10)) == kept.standing(range(10))
    later = Keeper(pieces)
    later.enter(images(20, 21), E[[3, 7]])
    assert verify(pieces).fine


def test_a_journal_that_could_not_be_carried_to_the_end_is_empty(kept, monkeypatch):
    new = Journal.open(None)
    monkeypatch.setattr(carrying, "_CHUNK", 4)

    def fails():
        raise OSError("out of memory")

    with pytest.raises(OSError, match="out of memory"):
        carry(kept.journal, new, disturbed(3, fails))
    assert new.empty
    assert new.position().sightings == 0
    assert carry(kept.journal, new, run()).sightings == 10


@pytest.mark.parametrize("turn", [1, 3], ids=["at the first images", "at the last"])
@pytest.mark.parametrize(
    "write",
    [lambda keeper: keeper.enter([Image("late.jpg", b"late")], E[[6]]), lambda keeper: rename(keeper, 0, "grey heron")],
    ids=["a sighting", "an edit"],
)
def test_what_is_written_while_a_journal_is_carried_is_not_left_behind_without_a_word(kept, monkeypatch, turn, write):
    new = Journal.open(None)
    monkeypatch.setattr(carrying, "_CHUNK", 4)
    with pytest.raises(JournalError, match="was written to while it was carried"):
        carry(kept.journal, new, disturbed(turn, lambda: write(kept)))
    assert new.empty


@pytest.mark.parametrize("turn", [1, 3], ids=["at the first images", "at the last"])
@pytest.mark.parametrize("enters", [False, True], ids=["opened", "and entered"])
def test_a_new_journal_that_another_begins_meanwhile_is_left_to_it(kept, monkeypatch, tmp_path, turn, enters):
    new, others = Journal.open(tmp_path / "new.db"), []
    monkeypatch.setattr(carrying, "_CHUNK", 4)

    def begins():  # as `newfound discover NEW_RUN --watch` does, before its first image or after it
        others.append(keeper_of(where=tmp_path / "new.db"))
        assert others[0].book.position.sightings == 0
        if enters:
            others[0].enter(images(0), E[[7]])

    with pytest.raises(JournalError, match=r"was begun by another program while .* was carried to it"):
        carry(kept.journal, new, disturbed(turn, begins))
    assert [model.fingerprint for model, _ in new.models()] == ["a model"]
    others[0].enter(images(1, 2), E[[7, 3]])
    assert others[0].standing(range(2 + enters)) == ([3, 3, 4] if enters else [3, 4])
    assert others[0].book.to_bytes() == Keeper(new).book.to_bytes()
    assert verify(new).fine
    assert verify(kept.journal).fine
    assert carry(kept.journal, Journal.open(None), run()).sightings == 10


def test_who_had_opened_the_new_journal_while_it_was_empty_finds_what_was_carried(kept, tmp_path):
    new, early = Journal.open(tmp_path / "new.db"), Journal.open(tmp_path / "new.db")
    assert early.empty
    carry(kept.journal, new, run())
    early.begin("another model", {}, Book(plain(), Catalogue(CLASSES)).to_bytes())  # too late: it changes nothing
    keeper = Keeper(early)
    assert keeper.standing(range(10)) == kept.standing(range(10))
    keeper.enter(images(20, 21), E[[3, 7]])
    assert verify(new).fine


def taught_too() -> SimpleNamespace:
    """A run that was also taught what was promoted as bittern, of the third and the fourth kind."""
    encoder, known = FirstByte(), np.eye(8)[:4]

    def readable(sources):
        features, there, errors = encoder.readable(sources)
        features[features[:, 4] == 1] = known[3]
        return features, there, errors

    other = run()
    other.encoder, other.classes = SimpleNamespace(readable=readable), [*CLASSES, "bittern"]
    other.dictionary = lambda: PrototypeDictionary(known, 0.8)
    return other


def test_what_was_edited_before_a_journal_was_carried_is_not_taken_back_and_what_came_later_is(tmp_path):
    for n in range(8):
        (tmp_path / f"{n}.jpg").write_bytes(bytes([3 + n % 4, n]))
    files = sorted(tmp_path.iterdir())
    keeper, new = keeper_of(), Journal.open(None)
    keeper.enter([Image(str(file), content_of(file)) for file in files], E[[3 + n % 4 for n in range(8)]])
    before = Curator(keeper.journal, actor="ada")
    before.merge([3, 4])
    before.rename(3, "bittern")
    before.promote(3)
    carry(keeper.journal, new, taught_too())
    curator = Curator(new, actor="ada")
    stands = [3, 3, 5, 6, 3, 3, 5, 6]
    state = curator.keeper.book.to_bytes()
    for number in range(3):
        with pytest.raises(SettingsError, match=f"event {number} came before the journal was carried to another model"):
            curator.undo(number)
    with pytest.raises(SettingsError, match="nothing to undo since the journal was carried"):
        curator.undo()
    with pytest.raises(SettingsError, match=r"event 3, carried by .*, cannot be taken back"):
        curator.undo(3)
    assert curator.keeper.book.to_bytes() == state
    curator.move([2], 6)
    curator.merge([5, 6])
    curator.undo()
    curator.undo()
    assert curator.keeper.standing(range(8)) == stands
    assert (curator.category(3).name, curator.category(4).id) == ("bittern", 3)
    assert verify(new).fine
    before.undo()  # in the old journal all is as it was
    assert not before.category(3).promoted


def test_of_a_journal_that_an_older_newfound_carried_undo_takes_nothing_back_from_before_its_genesis(kept):
    new = Journal.open(None)
    carry(kept.journal, new, run())
    with new.writing() as writer:  # no event said so
        book, position = Book.from_bytes(new.genesis().state), kept.journal.position()
        writer._connection.exec_driver_sql("DELETE FROM events WHERE kind = 'carried'")
        writer._reached = book.position = position
        writer.snapshot(book.to_bytes(), genesis=True)
    curator = Curator(new, actor="ada")
    with pytest.raises(SettingsError, match="nothing to undo since"):
        curator.undo()
    curator.rename(4, "gull")
    assert curator.undo().details["was"] == "renamed"


def test_sightings_can_be_streamed_with_a_few_in_memory(kept, monkeypatch):
    curator, stream, sizes = Curator(kept.journal), Journal.stream, []

    def watched(self, *given, **options):
        for rows in stream(self, *given, **options):
            sizes.append(len(rows))
            yield rows

    told = curator.sightings()
    monkeypatch.setattr(Journal, "stream", watched)
    streamed = curator.stream(chunk=3)
    first = next(streamed)
    assert sizes == [3], "no more is read than is asked for"
    assert [first, *streamed] == told
    assert sizes == [3, 3, 3, 1]


def test_a_journal_of_nothing_is_carried():
    old, new = Journal.open(None), Journal.open(None)
    old.begin("a model", {}, Book(plain(), Catalogue(CLASSES)).to_bytes())
    assert carry(old, new, run()).sightings == 0
    assert not new.empty
