"""Promises of the journal at its edges: several writers, automatic merges, what is forgotten, and closing."""

from __future__ import annotations

import sqlite3
import sys
import threading
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from newfound.carrying import carry
from newfound.curator import Curator
from newfound.discoverer import Discoverer
from newfound.discovery import PrototypeDictionary
from newfound.errors import JournalError, SettingsError
from newfound.features import Block
from newfound.images import content_of
from newfound.journal import Journal, editing
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.keeper import Image, Keeper
from newfound.journal.rebuilding import known_categories
from newfound.journal.replaying import as_of, verify

CLASSES = ["heron", "owl", "wren"]
E = np.eye(8)


def merging():
    """Merges the nearest of its categories by itself after every four sightings."""
    return PrototypeDictionary(E[:3], 0.8, update="running", merge_every=4, merge_at=0.7)


def plain():
    return PrototypeDictionary(E[:3], 0.8)


def begun(make=plain, where=None) -> Journal:
    journal = Journal.open(where)
    journal.begin("a model", {}, Book(make(), Catalogue(CLASSES)).to_bytes())
    return journal


def keeper_of(make=plain, where=None, actor="ada") -> Keeper:
    return Keeper(begun(make, where), actor=actor)


def images(*numbers: int) -> list[Image]:
    return [Image(f"{n}.jpg", n.to_bytes(16, "little")) for n in numbers]


def merge(keeper, *categories):
    return keeper.edit(lambda book, _: editing.merge(book.catalogue, categories))


def rename(keeper, category, name):
    return keeper.edit(lambda book, _: editing.rename(book.catalogue, category, name))


def move(keeper, numbers, category):
    return keeper.edit(lambda book, w: editing.move(book.catalogue, keeper.places(w, numbers), category))


def counts(keeper) -> dict[int, int]:
    tally = keeper.book.catalogue.counts(keeper.book.dictionary)
    return {category: count for category, count in tally.items() if count}


def stand(keeper, *numbers) -> dict[int, int]:
    homes = keeper.standing(numbers)
    return {home: homes.count(home) for home in set(homes)}


# Two directions with a cosine of 0.75: apart at the threshold of 0.8, one when `merging` looks at them again.
NEAR = 0.75 * E[4] + np.sqrt(1 - 0.75**2) * E[5]


def test_a_name_that_is_no_unicode_text_is_in_the_snapshots(tmp_path):
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin("a model", {}, Book(plain(), Catalogue(["heron", "owl", "\udcffren"])).to_bytes())
        keeper = Keeper(journal, actor="ada")
        keeper.enter(images(0), E[[4]])
        rename(keeper, 3, "b\udcffd")  # as the folders of an old archive may be called
        book = Book.from_bytes(keeper.book.to_bytes())
        assert [book.catalogue.name(category) for category in (2, 3)] == ["\udcffren", "b\udcffd"]


def test_a_catalogue_that_follows_step_by_step_is_the_one_that_follows_at_once():
    def grown(step_by_step: bool) -> dict:
        dictionary, catalogue = plain(), Catalogue(CLASSES)
        dictionary.observe(E[[3, 4, 5]])  # sightings 0, 1, 2 found 3, 4, 5
        for part in (3, 4, 5):
            catalogue.found(part)
        catalogue.entries[4].name, catalogue.entries[5].name = "tern", "gull"
        dictionary.reassign([1], E[[4]], [4], 5)  # the last of 4 goes to 5, which keeps its own name
        if step_by_step:
            catalogue.follow(dictionary)
        dictionary.merge([3, 5])  # 3 has no name: it takes over that of 5
        catalogue.follow(dictionary)
        return {number: vars(entry) for number, entry in catalogue.entries.items()}

    assert grown(step_by_step=False) == grown(step_by_step=True)
    assert grown(step_by_step=False)[3]["name"] == "gull"


def test_sightings_stand_where_their_part_went_even_if_a_person_had_merged_it():
    keeper = keeper_of(merging)
    keeper.enter(images(0, 1, 2), np.stack([E[3], E[4], NEAR]))  # 3, 4, 5
    merge(keeper, 3, 5)
    keeper.enter(images(3), E[[0]])  # the fourth: parts 4 and 5 become one, and 3 is left
    assert keeper.book.dictionary.resolve(5) == 4
    assert counts(keeper) == stand(keeper, 0, 1, 2, 3) == {0: 1, 3: 1, 4: 2}
    assert [row.number for row in keeper.rows(4)] == [1, 2]
    keeper.forget([3])
    assert counts(keeper) == stand(keeper, 0, 1, 2) == {3: 1, 4: 2}, "and there they stay"


def test_a_category_that_comes_back_takes_nothing_along_that_went_elsewhere():
    keeper = keeper_of(merging)
    keeper.enter(images(0, 1, 2), np.stack([E[4], NEAR, NEAR]))  # 3 and, twice, 4
    move(keeper, [2], 0)
    keeper.enter(images(3), E[[0]])  # 3 and 4 become one
    assert keeper.book.catalogue.resolve(4) == 3
    keeper.undo()  # sighting 2 goes back to 4, which lives under its own id again
    assert counts(keeper) == stand(keeper, 0, 1, 2, 3) == {0: 1, 3: 2, 4: 1}
    assert [row.number for row in keeper.rows(4)] == [2]


def test_a_merge_that_is_undone_leaves_no_category_without_its_images():
    keeper = keeper_of(merging)
    keeper.enter(images(0, 1, 2), np.stack([E[3], E[4], NEAR]))  # 3, 4, 5
    merge(keeper, 3, 5)
    keeper.enter(images(3), E[[0]])  # part 5 goes to 4 by itself
    keeper.undo()
    assert keeper.book.catalogue.resolve(5) == 4, "where its image is"
    assert verify(keeper.journal).fine
    assert as_of(keeper.journal, float("inf")).to_bytes() == keeper.book.to_bytes()


def test_a_split_of_what_was_merged_is_taken_back_to_where_each_image_was():
    keeper = keeper_of()
    keeper.enter(images(0, 1, 2), E[[0, 3, 3]])  # 0, 3, 3
    merge(keeper, 0, 3)
    keeper.edit(lambda book, w: editing.split(book.catalogue, keeper.places(w, [0, 1, 2]), 0))
    keeper.undo()
    assert keeper.standing([0, 1, 2]) == [0, 0, 0]
    keeper.undo()
    assert keeper.standing([0, 1, 2]) == [0, 3, 3]
    assert counts(keeper) == {0: 1, 3: 2}
    assert keeper.book.catalogue.resolve(3) == 3
    assert verify(keeper.journal).fine


def test_a_long_chain_of_merges_is_followed_to_its_end():
    catalogue = Catalogue(["one"])
    for part in range(1, 3000):
        catalogue.found(part)
    for category in range(2999, 1, -1):
        catalogue.put_under(category, category - 1)
    assert catalogue.resolve(2999) == 1
    assert len(catalogue.parts(2999)) == 2999


def test_nobody_edits_in_the_name_of_newfound(monkeypatch):
    with pytest.raises(SettingsError, match="newfound"):
        Keeper(begun(), actor="newfound")
    monkeypatch.setattr("getpass.getuser", lambda: "newfound")  # as in a container of its own
    keeper = keeper_of(actor=None)
    rename(keeper, 0, "grey heron")
    assert as_of(keeper.journal, float("inf")).catalogue.name(0) == "grey heron"


def test_closing_twice_is_closing_once(tmp_path):
    keeper = keeper_of(where=tmp_path / "journal.db")
    keeper.enter(images(*range(600)), E[np.arange(600) % 8])
    keeper.close()
    keeper.close()
    assert Journal.open(tmp_path / "journal.db").latest_snapshot().position.sightings == 600


def test_a_journal_for_reading_only_can_be_closed(tmp_path):
    keeper_of(where=tmp_path / "journal.db").enter(images(*range(600)), E[np.arange(600) % 8])
    with Curator(Journal.open(tmp_path / "journal.db", read_only=True)) as curator:
        assert sum(category.count for category in curator.categories()) == 600


def test_an_image_that_was_entered_twice_is_forgotten_twice(tmp_path):
    curator = Curator(begun(where=tmp_path / "journal.db"))
    both = [Image("/photos/secret.jpg", b"secret-content!!")]
    curator.keeper.enter(both, E[[3]])
    curator.keeper.enter(both, E[[3]], again=True)
    curator.keeper.enter(images(2), E[[3]])
    assert curator.forget("/photos/secret.jpg").details["sightings"] == [0, 1]
    curator.close()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secret" not in data


def test_a_merge_before_forgetting_of_what_the_dictionary_has_emptied_since_is_not_taken_back():
    for forgets in (False, True):
        keeper = keeper_of(merging)
        keeper.enter(images(0, 1, 2), np.stack([E[3], E[4], NEAR]))  # they found 3, 4 and 5
        merge(keeper, 3, 5)
        keeper.enter(images(3), E[[0]])  # part 5 goes to 4 by itself
        if not forgets:
            keeper.undo()
            assert keeper.book.catalogue.resolve(5) == 4, "where it would be without the merge"
            continue
        keeper.forget([3])
        before = keeper.book.to_bytes()
        with pytest.raises(SettingsError, match="merged by ada, cannot be taken back: category 5 has no images of its"):
            keeper.undo()
        assert keeper.book.to_bytes() == before
        assert verify(keeper.journal).fine


def test_a_category_that_the_dictionary_emptied_while_others_were_merged_into_it_lives_on_where_its_images_are():
    def stands(merges: bool) -> tuple[list[int], list[int]]:
        keeper = keeper_of(merging)
        keeper.enter(images(0, 1), np.stack([NEAR, E[4]]))  # they found 3 and 4
        move(keeper, [0], 4)
        keeper.undo()  # 3 has another part now, which is younger than that of 4
        if merges:
            merge(keeper, 3, 4)
        keeper.enter(images(2, 3), E[[0, 1]])  # and goes to it by itself
        if merges:
            keeper.undo()
        assert verify(keeper.journal).fine
        return keeper.standing([0, 1]), [keeper.book.catalogue.resolve(category) for category in (3, 4)]

    assert stands(merges=True) == stands(merges=False) == ([4, 4], [4, 4])


def test_to_forget_an_image_writes_no_place_of_those_that_stay(tmp_path):
    keeper = keeper_of(where=tmp_path / "journal.db")
    keeper.enter(images(*range(40)), E[3 + np.arange(40) % 5])
    move(keeper, [10], 4)
    keeper.forget([7])
    _, places, _ = keeper.journal.standing()
    assert places.keys() == {7, 10}
    assert verify(keeper.journal).fine


def test_what_has_lost_its_feature_can_still_be_forgotten(tmp_path):
    """As after `reencode`, when an image was gone: its name is in the journal, and what was learnt is not."""
    keeper = keeper_of(where=tmp_path / "journal.db")
    keeper.enter(images(0, 1), E[[3, 3]])
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        raw.execute("UPDATE sightings SET feature = NULL, part = -1 WHERE number = 1")
    keeper.forget([1])
    assert keeper.journal.sightings([1])[0].image is None
    with pytest.raises(SettingsError, match="forgotten"):
        keeper.forget([1])


def test_an_image_that_another_process_forgot_is_not_shown(tmp_path):
    mine = Curator(begun(where=tmp_path / "journal.db"))
    mine.keeper.enter([Image(None, b"of a picture")], E[[3]])
    mine._items[0] = "the picture itself"
    Curator(Journal.open(tmp_path / "journal.db")).forget([0])
    assert [sighting.image for sighting in mine.sightings()] == [None]


def test_a_second_forgetting_in_between_is_not_missed(tmp_path, monkeypatch):
    one = keeper_of(merging, tmp_path / "journal.db")
    one.enter(images(0, 1, 2), E[[3, 3, 4]])
    two = Keeper(Journal.open(tmp_path / "journal.db"), actor="bob")
    assert two.book.position.sightings == 3
    one.forget([0])
    read = Keeper._from_snapshot
    asked: list[int] = []

    def read_and_be_late(self, reader):
        book = read(self, reader)
        if self is two and not asked:
            asked.append(1)
            one.forget([1])
        return book

    monkeypatch.setattr(Keeper, "_from_snapshot", read_and_be_late)
    assert two.book.to_bytes() == one.book.to_bytes()


@pytest.mark.parametrize("edit", ["split", "forget"])
def test_where_images_stand_is_told_of_one_moment(edit, tmp_path, monkeypatch):
    mine = keeper_of(where=tmp_path / "journal.db")
    mine.enter(images(0, 1, 2, 3), E[[4, 3, 3, 5]])  # 3, 4, 4, 5
    other = Keeper(Journal.open(tmp_path / "journal.db"), actor="bob")
    place, members, asked = Journal.place, Journal.members, []

    def after_another_was_faster(question):
        def ask(self, *args, **options):
            if self is mine.journal and not asked:
                asked.append(1)
                if edit == "split":  # into the new category 6
                    other.edit(lambda book, w: editing.split(book.catalogue, other.places(w, [2]), 4))
                else:  # the parts of 4 and 5 are now called 3 and 4
                    other.forget([0])
            return question(self, *args, **options)

        return ask

    monkeypatch.setattr(Journal, "place", after_another_was_faster(place))
    monkeypatch.setattr(Journal, "members", after_another_was_faster(members))
    if edit == "split":
        assert mine.standing([1, 2, 3]) == [4, 6, 5]
    else:
        assert [row.number for row in mine.rows(4)] == [1, 2]
        asked.clear()


def test_categories_can_be_listed_while_another_thread_discovers():
    curator, failed = Curator(begun()), []
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            try:
                curator.categories()
            except Exception as error:  # any would be one too many
                failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        rng = np.random.default_rng(0)
        for start in range(0, 600, 20):
            curator.keeper.enter(images(*range(start, start + 20)), rng.normal(size=(20, 8)))
    finally:
        over.set()
        watcher.join()
        sys.setswitchinterval(before)
    assert not failed


def test_a_snapshot_is_compared_wherever_it_was_taken(tmp_path):
    keeper = keeper_of(where=tmp_path / "journal.db")
    for start in range(0, 2500, 500):
        keeper.enter(images(*range(start, start + 500)), E[np.arange(500) % 8])
    with keeper._writing() as (writer, book):
        book.catalogue.entries[3].name = "never told"
        writer.snapshot(book.to_bytes())
    keeper.enter(images(*range(2500, 2600)), E[np.arange(100) % 8])
    assert ["snapshot" in difference for difference in verify(keeper.journal).differences] == [True]


def test_a_journal_that_is_written_to_can_be_verified(monkeypatch):
    keeper = keeper_of()
    keeper.enter(images(0, 1), E[[3, 4]])
    events = Journal.events

    def and_then_others_write(self, **options):
        told = events(self, **options)
        merge(keeper, 3, 4)
        keeper.enter(images(2), E[[4]])
        return told

    monkeypatch.setattr(Journal, "events", and_then_others_write)
    told = verify(keeper.journal)
    assert (told.differences, told.sightings) == ([], 2)


def test_the_past_before_something_was_forgotten_is_not_made_up(monkeypatch):
    clock = iter(range(1000, 2000))
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    keeper = keeper_of()
    keeper.enter(images(0, 1), E[[3, 4]])
    then = float(next(clock))
    rename(keeper, 3, "tern")
    keeper.forget([1])
    with pytest.raises(JournalError, match="further"):
        as_of(keeper.journal, then)
    assert as_of(keeper.journal, float("inf")).catalogue.name(3) == "tern"


def test_the_past_ends_with_the_first_that_came_later_whatever_the_clocks_say(monkeypatch):
    keeper = keeper_of()
    for number, now in enumerate([20.0, 50.0, 30.0]):  # the second is from a machine whose clock is fast
        monkeypatch.setattr("time.time", lambda now=now: now)
        keeper.enter(images(number), E[[3 + number]])
    assert as_of(keeper.journal, 40.0).catalogue.living() == [0, 1, 2, 3]


def test_a_number_beyond_all_databases_is_refused():
    keeper = keeper_of()
    with pytest.raises(SettingsError, match="no sighting"):
        move(keeper, [10**30], 0)


def test_a_snapshot_that_does_not_fit_together_is_a_damaged_journal():
    from newfound.journal.state import from_bytes, to_bytes

    state = from_bytes(Book(plain(), Catalogue(CLASSES)).to_bytes())
    state["dictionary"]["next_id"] = 77
    with pytest.raises(JournalError, match="damaged"):
        Book.from_bytes(to_bytes(state))
    del state["catalogue"]
    with pytest.raises(JournalError, match="damaged"):
        Book.from_bytes(to_bytes(state))


def test_a_name_that_is_taken_is_not_promoted():
    keeper = keeper_of()
    keeper.enter(images(0), E[[3]])
    rename(keeper, 3, "owl")
    with pytest.raises(SettingsError, match="merge"):
        keeper.edit(lambda book, _: editing.flag(book.catalogue, [3], "promoted", True))
    rename(keeper, 3, "tern")
    keeper.edit(lambda book, _: editing.flag(book.catalogue, [3], "promoted", True))
    rename(keeper, 3, "owl")
    assert known_categories(keeper.book.catalogue, CLASSES) == [0, 1, 2], "a known class keeps its id"


class FirstByte:
    """An encoder of images that are bytes: the first one says which direction the feature has."""

    batch, dimension = 4, 8

    def contents(self, items):
        return [item.ljust(16) for item in items]

    def stream(self, items, block=None):
        items = iter(items)
        while some := list(islice(items, block or self.batch)):
            features = E[[item[0] for item in some]].astype(np.float32)
            yield Block(some, features, list(range(len(some))), [None] * len(some), self.contents(some))

    def readable(self, paths):
        features = [E[Path(path).read_bytes()[0]] for path in paths]
        return np.array(features, np.float32).reshape(-1, 8), list(range(len(paths))), {}


def test_a_folder_that_is_given_again_can_be_stopped():
    discoverer = Discoverer(FirstByte(), plain(), CLASSES)
    given = [bytes([n % 8, n]) for n in range(20)]
    discoverer.observe(given)
    assert len(discoverer.observe(given, stop=lambda: True)) == 4, "one block"


def test_a_new_image_among_many_old_ones_does_not_wait_for_the_end():
    discoverer = Discoverer(FirstByte(), plain(), CLASSES)
    old = [bytes([n % 8, n]) for n in range(200)]
    discoverer.observe(old)
    read = []

    def stream():
        for image in [b"\3 new", *old]:
            read.append(image)
            yield image

    answers = discoverer.observe(stream(), block=4)
    assert not next(answers).repeated
    assert len(read) < 100
    assert len([*answers]) == 200


def test_what_a_person_moved_stays_there_when_its_image_is_gone_before_the_journal_is_carried(tmp_path):
    files = [tmp_path / f"{number}.jpg" for number in range(3)]
    for kind, file in zip((3, 3, 4), files, strict=True):
        file.write_bytes(bytes([kind]) + file.name.encode())
    old, new = keeper_of(), Journal.open(None)
    old.enter([Image(str(file), content_of(file)) for file in files], E[[3, 3, 4]])
    move(old, [1], 4)
    files[1].unlink()
    run = SimpleNamespace(
        classes=CLASSES, encoder=FirstByte(), dictionary=plain, fingerprint=lambda: "another model", about=dict
    )
    assert carry(old.journal, new, run).missing == [str(files[1])]
    assert Keeper(new).standing([0, 1, 2]) == [3, 4, 4]
