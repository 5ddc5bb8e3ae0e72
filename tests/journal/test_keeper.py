"""Promises of the keeper: what is answered is committed, an edit is an event, the book is a fold over the journal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newfound.discovery import BayesianDictionary, PrototypeDictionary
from newfound.errors import JournalError, SettingsError
from newfound.journal import Journal, editing
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue
from newfound.journal.keeper import Image, Keeper
from newfound.journal.replaying import as_of, verify, what_if

CLASSES = ["heron", "owl", "wren"]
KINDS = 8


def fixed():
    return PrototypeDictionary(np.eye(KINDS)[:3], 0.8)


def running():
    return PrototypeDictionary(np.eye(KINDS)[:3], 0.8, update="running", merge_every=20, merge_at=0.99)


def weighing():
    """Founds, doubts, thinks again every 10 sightings, and merges."""
    sums = 6.0 * 4 * np.eye(KINDS)[:3]
    return BayesianDictionary(
        np.full(KINDS, 9.0), sums, [4, 4, 4], 2.0, alone=-6.0, reconsider_every=10, memory=40, merge_at=0.0
    )


MAKERS = [fixed, running, weighing]


def readings(seed: int, count: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return 6.0 * np.eye(KINDS)[rng.integers(0, KINDS, count)] + rng.normal(size=(count, KINDS)) * 1.2


def images(start: int, count: int) -> list[Image]:
    return [Image(f"{n}.jpg", n.to_bytes(16, "little")) for n in range(start, start + count)]


def keeper_of(make, where=None, **options) -> Keeper:
    journal = Journal.open(where)
    journal.begin("a model", {}, Book(make(), Catalogue(CLASSES)).to_bytes())
    return Keeper(journal, actor="ada", **options)


def ids(entered) -> list[int]:
    return [one.row.category for one in entered]


def counts(keeper: Keeper) -> dict[int, int]:
    return keeper.book.catalogue.counts(keeper.book.dictionary)


def rename(keeper: Keeper, category: int, name: str):
    return keeper.edit(lambda book, _: editing.rename(book.catalogue, category, name))


def merge(keeper: Keeper, *categories: int):
    return keeper.edit(lambda book, _: editing.merge(book.catalogue, categories))


def split(keeper: Keeper, category: int, numbers):
    return keeper.edit(lambda book, w: editing.split(book.catalogue, keeper.places(w, numbers), category))


def move(keeper: Keeper, numbers, category: int):
    return keeper.edit(lambda book, w: editing.move(book.catalogue, keeper.places(w, numbers), category))


@pytest.mark.parametrize("make", MAKERS)
def test_what_was_entered_is_there_after_it_is_opened_again(make, tmp_path):
    keeper = keeper_of(make, tmp_path / "journal.db")
    first = ids(keeper.enter(images(0, 30), readings(1, 30)))
    del keeper  # no close: as if the process had been killed
    again = Keeper(Journal.open(tmp_path / "journal.db"))
    rest = ids(again.enter(images(30, 30), readings(2, 30)))
    whole = keeper_of(make).enter(images(0, 60), np.concatenate([readings(1, 30), readings(2, 30)]))
    assert first + rest == ids(whole)


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_answered_is_what_is_stored(make, journal_at):
    keeper = keeper_of(make, journal_at)
    named = [Image(None), Image("bad\udcff.jpg", b"1"), Image("nul\0.jpg", b"2"), *images(3, 17)]
    entered = keeper.enter(named, readings(1, 20))
    assert [one.row for one in entered] == keeper.journal.sightings(range(20))
    assert all(len(one.row.runners_up) == 2 for one in entered)
    assert [one.row for one in keeper.enter(named[1:], readings(2, 19))] == [one.row for one in entered[1:]]


def test_an_image_is_entered_once_however_often_it_is_given(tmp_path):
    keeper = keeper_of(fixed)
    first = keeper.enter(images(0, 10), readings(1, 10))
    mixed = keeper.enter(images(5, 10), readings(2, 10))
    assert [one.repeated for one in mixed] == [True] * 5 + [False] * 5
    assert [one.row for one in mixed[:5]] == [one.row for one in first[5:]]
    assert keeper.book.position.sightings == 15


def test_an_image_twice_in_one_block_is_entered_once():
    keeper = keeper_of(fixed)
    one, two = keeper.enter(images(0, 1) * 2, readings(1, 1).repeat(2, axis=0))
    assert (one.repeated, two.repeated) == (False, True)
    assert two.row == one.row
    assert keeper.book.position.sightings == 1


def test_images_can_be_entered_again_when_that_is_asked_for():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 3), readings(1, 3))
    assert not any(one.repeated for one in keeper.enter(images(0, 3), readings(1, 3), again=True))
    assert keeper.book.position.sightings == 6


def test_a_decision_is_taken_on_what_is_stored():
    keeper = keeper_of(fixed)
    x = readings(3, 20)
    entered = keeper.enter(images(0, 20), x)
    alone = fixed().observe(np.asarray(x, np.float16).astype(np.float32))
    assert [one.row.score for one in entered] == alone.score.tolist()
    assert entered[0].row.feature == x[0].astype("<f2").tobytes()


def test_a_merge_keeps_both_in_the_search_and_can_be_undone_without_a_trace():
    keeper = keeper_of(fixed)
    x = np.eye(KINDS)[[3, 4, 5]]
    assert ids(keeper.enter(images(0, 3), x)) == [3, 4, 5]
    before = keeper.book.dictionary.state()["prototypes"].tobytes()
    merge(keeper, 4, 3)
    assert ids(keeper.enter(images(3, 3), x)) == [3, 3, 5], "what looks like either is recognised"
    assert counts(keeper) == {0: 0, 1: 0, 2: 0, 3: 4, 5: 2}
    keeper.undo()
    assert counts(keeper) == {0: 0, 1: 0, 2: 0, 3: 2, 4: 2, 5: 2}
    assert keeper.book.dictionary.state()["prototypes"].tobytes() == before


def test_a_name_that_a_person_gave_outlives_one_that_nobody_did():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 2), np.eye(KINDS)[[3, 4]])
    rename(keeper, 4, "bittern")
    merge(keeper, 3, 4)
    assert keeper.book.catalogue.name(3) == "bittern"
    keeper.undo()
    assert (keeper.book.catalogue.name(3), keeper.book.catalogue.name(4)) == ("new-1", "bittern")


@pytest.mark.parametrize("make", MAKERS)
def test_a_split_makes_a_new_category_that_later_images_join(make):
    keeper = keeper_of(make)
    far = 6.0 * np.eye(KINDS)[3]
    x = np.stack([far, far, far])
    keeper.enter(images(0, 3), x)
    before = counts(keeper)
    event = split(keeper, 3, [1, 2])
    new = event.details["category"]
    assert new == max(before) + 1
    assert counts(keeper)[new] == 2
    assert keeper.standing([0, 1, 2]) == [3, new, new]
    keeper.undo()
    assert counts(keeper) == before
    assert keeper.standing([0, 1, 2]) == [3, 3, 3]
    assert keeper.book.catalogue.resolve(new) == 3, "an id that was given out stays valid"


def test_all_images_moved_out_leave_an_id_that_lives_on_where_they_went():
    keeper = keeper_of(running)
    keeper.enter(images(0, 4), np.eye(KINDS)[[3, 3, 4, 4]])
    move(keeper, [0, 1], 4)
    assert keeper.book.catalogue.resolve(3) == 4
    assert counts(keeper)[4] == 4
    keeper.undo()
    assert counts(keeper)[3] == 2
    assert keeper.book.catalogue.resolve(3) == 3
    assert ids(keeper.enter(images(4, 1), np.eye(KINDS)[[3]])) == [3], "it is found again under its own id"


def test_a_merge_of_one_is_nothing_to_record_or_undo():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 2), np.eye(KINDS)[[3, 4]])
    assert merge(keeper, 3).details["category"] == 3
    merge(keeper, 3, 4)
    merge(keeper, 4, 3)
    assert keeper.journal.position().events == 1
    keeper.undo()
    assert keeper.book.catalogue.living() == [0, 1, 2, 3, 4]


def test_what_is_to_be_taught_is_so_after_a_merge_too():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 2), np.eye(KINDS)[[3, 4]])
    rename(keeper, 4, "bittern")
    keeper.edit(lambda book, _: editing.flag(book.catalogue, [4], "promoted", True))
    merge(keeper, 3, 4)
    assert (keeper.book.catalogue.name(3), keeper.book.catalogue.entries[3].promoted) == ("bittern", True)
    keeper.undo()
    assert [keeper.book.catalogue.entries[c].promoted for c in (3, 4)] == [False, True]


def test_ids_may_be_numpys_and_names_are_one_line():
    keeper = keeper_of(fixed)
    rename(keeper, np.int64(0), "heron")
    assert keeper.book.catalogue.name(0) == "heron"
    for name in ("two\nlines", "a bell \a", "\x1b[31mred", " "):
        with pytest.raises(SettingsError, match="a category's name"):
            rename(keeper, 0, name)
    assert keeper.book.catalogue.name(0) == "heron"


def test_undo_goes_back_one_step_after_the_other():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 2), np.eye(KINDS)[[3, 4]])
    rename(keeper, 3, "one")
    rename(keeper, 3, "two")
    keeper.edit(lambda book, _: editing.flag(book.catalogue, [4], "ignored", True))
    keeper.undo()
    assert not keeper.book.catalogue.entries[4].ignored
    keeper.undo()
    assert keeper.book.catalogue.name(3) == "one"
    keeper.undo()
    assert keeper.book.catalogue.name(3) == "new-1"
    with pytest.raises(SettingsError, match="nothing to undo"):
        keeper.undo()


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda k: rename(k, 99, "x"), "no category 99"),
        (lambda k: rename(k, "3", "x"), "no category '3'; ids go from 0"),
        (lambda k: rename(k, [3], "x"), r"no category \[3\]; ids go from 0"),
        (lambda k: rename(k, 3, "  "), "cannot be empty"),
        (lambda k: rename(k, 3, 7), "is text, not 7"),
        (lambda k: merge(k, 0, 1), "both known"),
        (lambda k: split(k, 3, [1]), "is in category 4"),
        (lambda k: split(k, 3, []), "name the images"),
        (lambda k: move(k, [77], 3), "no sighting 77"),
        (lambda k: k.edit(lambda b, _: editing.flag(b.catalogue, [3], "promoted", True)), "rename it first"),
        (lambda k: k.edit(lambda b, _: editing.flag(b.catalogue, [0], "ignored", True)), "is known"),
        (lambda k: k.undo(), "nothing to undo"),
        (lambda k: k.forget([77]), "no sighting 77"),
        (lambda k: k.forget([]), "name the images"),
    ],
)
def test_an_edit_that_cannot_be_is_refused_changes_nothing_and_costs_no_reading(edit, words):
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 2), np.eye(KINDS)[[3, 4]])
    book, before = keeper.book, keeper.book.to_bytes()
    with pytest.raises(SettingsError, match=words):
        edit(keeper)
    assert keeper.book is book, "it was not read again, which takes seconds in a large journal"
    assert keeper.book.to_bytes() == before
    assert keeper.journal.position().events == 0


def test_an_edit_that_fails_halfway_has_the_book_read_again():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 2), np.eye(KINDS)[[3, 4]])
    book, before = keeper.book, keeper.book.to_bytes()
    changes = [{"op": "name", "category": 3, "name": "half done"}, {"op": "cut", "cut": 5.0}]
    with pytest.raises(SettingsError, match="from -1 to 1"):
        keeper.edit(lambda *_: ("several", {"changes": changes}))
    assert book.catalogue.name(3) == "half done"
    assert keeper.book.to_bytes() == before
    assert keeper.journal.position().events == 0


def test_another_cut_is_an_event_that_a_replay_follows():
    keeper = keeper_of(fixed)
    x = readings(5, 40)
    keeper.enter(images(0, 20), x[:20])
    keeper.edit(lambda book, _: editing.recut(book.dictionary.threshold, 0.3))
    entered = keeper.enter(images(20, 20), x[20:])
    assert {one.row.cut for one in entered} == {0.3}
    assert verify(keeper.journal).fine


def test_two_keepers_of_one_journal_see_one_order(tmp_path):
    one = keeper_of(weighing, tmp_path / "journal.db")
    two = Keeper(Journal.open(tmp_path / "journal.db"), actor="bob")
    x = readings(7, 90)
    given_ = []
    for turn, start in enumerate(range(0, 90, 9)):
        keeper = (one, two)[turn % 2]
        given_ += ids(keeper.enter(images(start, 9), x[start : start + 9]))
        if turn == 3:
            rename(two, given_[0], "first")
        if turn == 5:
            merge(one, *[c for c in one.book.catalogue.living() if c > 2][:2])
    assert one.book.to_bytes() == two.book.to_bytes()
    assert verify(one.journal).fine
    assert one.book.catalogue.name(one.book.catalogue.resolve(given_[0])) == "first"


def test_a_failed_commit_changes_nothing_and_the_keeper_goes_on(monkeypatch):
    keeper = keeper_of(weighing)
    keeper.enter(images(0, 20), readings(1, 20))
    before = keeper.book.to_bytes()
    from newfound.journal import writing

    def full(*_):
        raise JournalError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(writing.Writer, "append_packed", full)
        with pytest.raises(JournalError, match="full"):
            keeper.enter(images(20, 20), readings(2, 20))
    assert keeper.book.to_bytes() == before
    rest = ids(keeper.enter(images(20, 20), readings(2, 20)))
    alike = keeper_of(weighing)
    alike.enter(images(0, 20), readings(1, 20))
    assert rest == ids(alike.enter(images(20, 20), readings(2, 20)))


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_forgotten_is_gone_from_every_table_and_every_id_stays_valid(make, tmp_path):
    keeper = keeper_of(make, tmp_path / "journal.db")
    secret = np.full((1, KINDS), 4.3125)
    x = readings(1, 30)
    keeper.enter(images(0, 15), x[:15])
    entered = keeper.enter([Image("secret-place.jpg", b"secret-content!!")], secret)
    keeper.enter(images(15, 15), x[15:])
    living = set(keeper.book.catalogue.entries)
    keeper.forget([15])
    assert set(keeper.book.catalogue.entries) == living
    assert keeper.journal.sightings([15])[0].category == entered[0].row.category
    assert sum(counts(keeper).values()) == 30
    keeper.close()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"secret-place" not in data
    assert b"secret-content" not in data
    assert secret.astype("<f2").tobytes() not in data
    assert secret.astype("<f4").tobytes() not in data
    assert secret.astype("<f8").tobytes() not in data
    again = Keeper(Journal.open(tmp_path / "journal.db"))
    again.enter(images(30, 30), readings(9, 30))
    assert verify(again.journal).fine
    with pytest.raises(SettingsError, match="forgotten"):
        move(again, [15], 3)


@pytest.mark.parametrize(("make", "cut"), [(fixed, 0.3), (running, 0.3), (weighing, 5.0)])
def test_a_cut_that_a_person_has_set_outlives_forgetting(make, cut):
    keeper = keeper_of(make)
    keeper.enter(images(0, 20), readings(5, 20))
    keeper.edit(lambda book, _: editing.recut(book.dictionary.threshold, cut))
    keeper.forget([1])
    entered = keeper.enter(images(20, 20), readings(6, 20))
    assert {one.row.cut for one in entered} == {cut}
    assert verify(keeper.journal).fine


def test_after_something_is_forgotten_moves_are_undone_where_they_still_can_be():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 4), np.eye(KINDS)[[3, 3, 3, 4]])
    move(keeper, [1, 2], 4)
    keeper.forget([2])
    keeper.undo()
    assert keeper.standing([0, 1, 3]) == [3, 3, 4]
    assert verify(keeper.journal).fine


def test_undo_goes_on_to_what_was_before_when_all_that_it_would_put_back_is_forgotten():
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 3), np.eye(KINDS)[[3, 3, 4]])
    rename(keeper, 3, "bittern")
    move(keeper, [1], 4)
    keeper.forget([1])
    assert keeper.undo().details["was"] == "moved"
    assert keeper.undo().details["was"] == "renamed"
    assert verify(keeper.journal).fine


def test_what_if_gives_what_a_fresh_dictionary_with_that_cut_gives():
    keeper = keeper_of(fixed)
    x = readings(4, 50)
    keeper.enter(images(0, 50), x)
    told = what_if(keeper.journal, 0.5)
    alone = PrototypeDictionary(np.eye(KINDS)[:3], 0.5).observe(np.asarray(x, np.float16).astype(np.float32))
    assert told.categories == alone.category.tolist()
    assert told.discovered == len(set(alone.category.tolist()) - {0, 1, 2})
    assert keeper.book.position.sightings == 50


def test_the_past_is_as_it_was(monkeypatch):
    clock = iter(range(1000, 2000))
    monkeypatch.setattr("time.time", lambda: float(next(clock)))
    keeper = keeper_of(fixed)
    keeper.enter(images(0, 2), np.eye(KINDS)[[3, 4]])
    then = float(next(clock))
    rename(keeper, 3, "bittern")
    keeper.enter(images(2, 1), np.eye(KINDS)[[5]])
    book = as_of(keeper.journal, then)
    assert book.catalogue.living() == [0, 1, 2, 3, 4]
    assert book.catalogue.name(3) == "new-1"
    assert as_of(keeper.journal, float("inf")).to_bytes() == keeper.book.to_bytes()


def test_verify_finds_an_answer_that_was_changed_behind_its_back(tmp_path):
    import sqlite3

    keeper = keeper_of(fixed, tmp_path / "journal.db")
    keeper.enter(images(0, 10), readings(1, 10))
    keeper.close()
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        raw.execute("UPDATE sightings SET category = category + 1 WHERE number = 4")
    told = verify(Journal.open(tmp_path / "journal.db"))
    assert len(told.differences) == 1
    assert "sighting 4" in told.differences[0]


@pytest.mark.parametrize("column", ["probability", "new_probability"])
@pytest.mark.parametrize("value", ["NULL", "0.123"])
def test_verify_finds_a_probability_that_was_changed_behind_its_back(tmp_path, column, value):
    import sqlite3

    keeper = keeper_of(weighing, tmp_path / "journal.db")
    keeper.enter(images(0, 40), readings(1, 40))
    keeper.close()
    assert verify(Journal.open(tmp_path / "journal.db")).fine
    with sqlite3.connect(tmp_path / "journal.db") as raw:
        raw.execute(f"UPDATE sightings SET {column} = {value} WHERE number = 4")
    told = verify(Journal.open(tmp_path / "journal.db"))
    assert len(told.differences) == 1
    assert f"sighting 4 was answered with {column} {value.replace('NULL', 'None')}; replayed" in told.differences[0]


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["see"] * 3 + ["rename", "merge", "split", "move", "undo", "open", "snapshot", "forget"]),
        st.integers(0, 10_000),
        st.integers(1, 25),
    ),
    min_size=3,
    max_size=14,
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(MAKERS), ACTIONS)
def test_whatever_is_done_the_journal_replays_to_the_same_book_bit_by_bit(make, actions):
    keeper = keeper_of(make)
    seen = 0
    for action, seed, size in actions:
        rng = np.random.default_rng(seed)
        numbers = [r.number for rows in keeper.journal.stream(features=True) for r in rows if r.feature is not None]
        living = keeper.book.catalogue.living()
        try:
            if action == "see":
                keeper.enter(images(seen, size), readings(seed, size))
                seen += size
            elif action == "rename":
                rename(keeper, int(rng.choice(living)), f"name {seed}")
            elif action == "merge":
                merge(keeper, *rng.choice(living, 2).tolist())
            elif action == "split" and numbers:
                home = keeper.standing([int(rng.choice(numbers))])[0]
                rows = keeper.rows(home, features=True)
                some = [row.number for row in rows if row.feature is not None][: 1 + size // 2]
                split(keeper, home, some)
            elif action == "move" and numbers:
                move(keeper, {int(n) for n in rng.choice(numbers, min(size, 4))}, int(rng.choice(living)))
            elif action == "undo":
                keeper.undo()
            elif action == "open":
                keeper = Keeper(keeper.journal, actor="ada")
            elif action == "snapshot":
                with keeper._writing() as (writer, book):
                    writer.snapshot(book.to_bytes())
            elif action == "forget" and numbers:
                keeper.forget([int(rng.choice(numbers))])
        except SettingsError:
            pass
    book = keeper.book
    told = verify(keeper.journal)
    assert told.fine, told.differences
    assert Keeper(keeper.journal).book.to_bytes() == book.to_bytes()
    present = [r.number for rows in keeper.journal.stream(features=True) for r in rows if r.feature is not None]
    homes = keeper.standing(present)
    tally = {category: homes.count(category) for category in set(homes)}
    assert {c: n for c, n in counts(keeper).items() if n} == tally, "counts are of where sightings stand"
    assert all(book.catalogue.resolve(c) in book.catalogue.living() for c in book.catalogue.entries)
