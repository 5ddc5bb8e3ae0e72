"""Promises of newfound.journal.Journal, on SQLite and on PostgreSQL: what is appended is there, in order, for good."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from newfound.errors import JournalError
from newfound.journal import EventRow, Journal, Model, Position, SightingRow, Snapshot, writing

START = Position(0, 0)


def event(number: int, at: int = 0, kind: str = "renamed", actor: str = "Ann", **details) -> EventRow:
    return EventRow(number, at, kind, actor, 1700000001.5, details)


def test_a_new_journal_is_empty_until_it_begins(journal_at):
    with Journal.open(journal_at) as journal:
        assert journal.empty
        with pytest.raises(JournalError, match="empty"):
            journal.genesis()
        with pytest.raises(JournalError, match="empty"):
            journal.model()
        journal.begin("a model", {"classes": ["cat"]}, b"genesis")
        assert not journal.empty
        model = journal.model()
        assert model == Model(1, "a model", {"classes": ["cat"]}, model.time)
        assert journal.genesis() == journal.latest_snapshot() == Snapshot(START, b"genesis", True)
        assert journal.position() == START


def test_the_first_to_begin_wins_and_the_second_changes_nothing(journal):
    journal.begin("another model", {}, b"another genesis")
    assert journal.model().fingerprint == "a model"
    assert journal.genesis().state == b"genesis"


def test_what_was_appended_is_there_when_it_is_opened_again(journal_at, sighting):
    rows, events = [sighting(0), sighting(1)], [event(0, 1, name="mallard")]
    with Journal.open(journal_at) as journal:
        journal.begin("a model", {}, b"genesis")
        with journal.writing() as writer:
            writer.append(rows, events)
    with Journal.open(journal_at) as journal:
        assert journal.position() == Position(2, 1)
        assert journal.tail(START) == (rows, events)
        assert journal.tail(Position(1, 1)) == (rows[1:], [])
        assert journal.tail(Position(2, 0)) == ([], events)
    with Journal.open(journal_at, read_only=True) as journal:
        assert journal.tail(START) == (rows, events)


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
FLOATS = st.floats(allow_nan=False)
IDS = st.integers(-1, 2**62)
NOTES = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=5,
)  # fmt: skip
SIGHTINGS = st.builds(
    SightingRow, st.just(0), st.none() | NAMES, st.none() | st.binary(min_size=16, max_size=16), IDS, IDS,
    st.booleans(), st.none() | FLOATS, st.none() | FLOATS, st.none() | FLOATS, st.none() | FLOATS,
    st.lists(st.tuples(IDS, FLOATS), max_size=3).map(tuple), st.none() | st.binary(max_size=40), st.just(1), FLOATS,
)  # fmt: skip
EVENTS = st.builds(EventRow, st.just(0), IDS, NAMES, NAMES, FLOATS, st.dictionaries(NAMES, NOTES, max_size=3))


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sightings=st.lists(SIGHTINGS, max_size=4), events=st.lists(EVENTS, max_size=3))
def test_whatever_is_appended_comes_back_equal(journal, sightings, events):
    with journal.writing() as writer:
        before = writer.position()
        rows = [replace(row, number=before.sightings + i) for i, row in enumerate(sightings)]
        notes = [replace(row, number=before.events + i) for i, row in enumerate(events)]
        writer.append(rows, notes)
        assert writer.tail(before) == (rows, notes)
    assert journal.tail(before) == (rows, notes)


def test_a_file_name_that_is_no_text_is_spelled_out(journal, sighting):
    with journal.writing() as writer:
        writer.append([sighting(0, image="bad\udcff.jpg"), sighting(1, image="nul\0.jpg")])
    assert [row.image for row in journal.sightings([0, 1])] == ["bad\\udcff.jpg", "nul\\0.jpg"]


@pytest.mark.parametrize("numbers", [[1], [0, 2], [0, 0]])
def test_numbers_continue_without_gaps_or_nothing_is_written(journal, sighting, numbers):
    with pytest.raises(JournalError, match="comes next"), journal.writing() as writer:
        writer.append([sighting(number) for number in numbers])
    with pytest.raises(JournalError, match="comes next"), journal.writing() as writer:
        writer.append([], [event(number) for number in numbers])
    assert journal.position() == START


def test_a_block_that_fails_leaves_no_trace_and_the_journal_goes_on(journal, sighting):
    def block():
        with journal.writing() as writer:
            writer.append([sighting(0)], [event(0)])
            writer.snapshot(b"later")
            raise KeyError("something")

    with pytest.raises(KeyError, match="something"):
        block()
    assert journal.position() == START
    assert journal.latest_snapshot().state == b"genesis"
    with journal.writing() as writer:
        writer.append([sighting(0)])
    assert journal.position() == Position(1, 0)


def test_inside_a_block_the_journal_sees_what_the_block_wrote_and_others_do_not(journal, journal_at, sighting):
    with Journal.open(journal_at, read_only=True) as other, journal.writing() as writer:
        writer.append([sighting(0)])
        assert writer.position() == journal.position() == Position(1, 0)
        assert writer.sightings([0]) == journal.sightings([0]) == [sighting(0)]
        assert other.position() == START
        with pytest.raises(JournalError, match="writing already"), journal.writing():
            pass
    assert journal.position() == Position(1, 0)


def test_the_first_sighting_of_a_content_is_found_among_any_number(journal, sighting):
    same = b"s" * 16
    with journal.writing() as writer:
        writer.append([sighting(0), sighting(1, content=same), sighting(2, content=same), sighting(3, content=None)])
        assert writer.find([same])[same].number == 1
    absent = [(10**6 + i).to_bytes(16, "big") for i in range(12_000)]
    found = journal.find(iter([*absent, same, sighting(0).content, same]))
    assert found == {same: sighting(1, content=same), sighting(0).content: sighting(0)}
    assert journal.find([]) == {}


def test_sightings_are_streamed_in_order_with_or_without_features(journal, fill):
    rows = fill(journal, 10)
    assert list(journal.stream(chunk=4)) == [rows[:4], rows[4:8], rows[8:]]
    assert list(journal.stream(2, 7, chunk=3)) == [rows[2:5], rows[5:7]]
    bare = [row for some in journal.stream(features=False) for row in some]
    assert [(row.number, row.image, row.feature) for row in bare] == [(row.number, row.image, None) for row in rows]
    assert journal.sightings([7, 2, 7, 99]) == [rows[2], rows[7]]


def test_members_are_where_they_were_moved_to(journal, sighting):
    # Answered: 0, 1, 2 -> part 3; 3 -> part 5. Then 1 moves to 5 and 3 to 3; 2 moves away and back.
    with journal.writing() as writer:
        writer.append([sighting(0), sighting(1), sighting(2), sighting(3, part=5)], [], {2: (9, False)})
    with journal.writing() as writer:
        writer.append([], [event(0)], {1: (5, True), 3: (3, False), 2: (3, True)})
        assert [row.number for row in writer.members([3])] == [0, 2, 3]

    def numbers(parts, **options):
        return [row.number for row in journal.members(parts, **options)]

    assert numbers([3]) == [0, 2, 3]
    assert numbers([5]) == [1]
    assert numbers([9]) == numbers([]) == []
    assert numbers([3, 5], newest_first=True, limit=2) == [3, 2]
    assert numbers([3, 5], offset=1, limit=2) == [1, 2]
    assert numbers([3, 5], offset=3) == [3]
    assert [journal.count_members(parts) for parts in ([3], [5], [9], [3, 5], [])] == [3, 1, 0, 4, 0]
    assert journal.place([0, 1, 2, 3, 99]) == {0: 3, 1: 5, 2: 3, 3: 3}
    assert journal.pinned([0, 1, 2, 3]) == {1, 2}
    assert journal.members([5])[0].feature is None
    assert journal.members([5], features=True)[0] == sighting(1)


def test_events_are_chosen_by_kind_actor_and_number(journal, sighting):
    events = [event(0), event(1, kind="merged"), event(2, kind="merged", actor="newfound"), event(3, actor="Bob")]
    with journal.writing() as writer:
        writer.append([sighting(0)], events)
    assert journal.events() == events
    assert journal.events(since=2) == events[2:]
    assert journal.events(kinds=["merged"], actor="Ann") == [events[1]]
    assert journal.events(newest_first=True, limit=2) == [events[3], events[2]]
    assert journal.tail(START, derived=False) == ([sighting(0)], [events[0], events[1], events[3]])


def test_the_genesis_and_the_newest_two_snapshots_stay(journal, fill):
    for number in range(4):
        fill(journal, 1)
        with journal.writing() as writer:
            writer.snapshot(b"state %d" % number)
    assert journal.latest_snapshot() == Snapshot(Position(4, 0), b"state 3", False)
    assert journal.genesis() == Snapshot(START, b"genesis", True)
    with journal._reading() as connection:
        states = connection.exec_driver_sql("SELECT state FROM snapshots ORDER BY id").scalars().all()
    assert [bytes(state) for state in states] == [b"genesis", b"state 2", b"state 3"]
    with journal.writing() as writer:
        writer.snapshot(b"rebuilt", genesis=True)
    assert journal.genesis() == journal.latest_snapshot() == Snapshot(Position(4, 0), b"rebuilt", True)


def test_a_snapshot_of_any_size_is_stored_in_pieces(journal, fill, monkeypatch):
    monkeypatch.setattr(writing, "_PIECE", 4)
    states = [b"", b"1234", b"12345", b"a state of many bytes", b"12345678"]
    for state in states:
        fill(journal, 1)
        with journal.writing() as writer:
            writer.snapshot(state)
        assert journal.latest_snapshot() == Snapshot(journal.position(), state, False)
        assert journal.genesis() == Snapshot(START, b"genesis", True), "of one piece, as it was written"
    with journal._reading() as connection:
        pieces = connection.exec_driver_sql("SELECT piece, state FROM snapshots ORDER BY id").all()
    assert b"".join(bytes(state) for _, state in pieces) == b"genesis" + states[-2] + states[-1], "nothing older"
    assert [piece for piece, _ in pieces] == [0, *range(6), 0, 1]
    with journal.writing() as writer:
        writer.snapshot(b"a state of many bytes", genesis=True)
    assert journal.genesis() == journal.latest_snapshot() == Snapshot(Position(5, 0), b"a state of many bytes", True)
    fill(journal, 1)
    with journal.writing() as writer:
        writer.snapshot(b"later state")
    assert journal.genesis().state == b"a state of many bytes"
    assert journal.latest_snapshot().state == b"later state"


def test_a_category_may_have_more_parts_than_a_statement_takes_values(sighting):
    many, journal = 40_000, Journal.open(None)
    journal.begin("a model", {}, b"genesis")
    with journal.writing() as writer:
        writer.append([sighting(n, part=part) for n, part in enumerate((39_999, 5, 20_000, 50_000, 12, 5))])
        writer.append((), (), {3: (17_000, True), 4: (60_000, False)})

    def numbers(**options) -> list[int]:
        return [row.number for row in journal.members(range(many), **options)]

    assert numbers() == [0, 1, 2, 3, 5]
    assert numbers(newest_first=True) == [5, 3, 2, 1, 0]
    assert numbers(limit=2) == [0, 1]
    assert numbers(limit=2, offset=2) == [2, 3]
    assert numbers(limit=2, offset=1, newest_first=True) == [3, 2]
    assert numbers(offset=4) == [5]
    assert [journal.count_members(range(many), since=since) for since in (0, 2, 6)] == [5, 3, 0]
    assert journal.count_members([5, 5]) == len(journal.members([5, 5])) == 2, "a part that is named twice counts once"


def test_a_new_model_is_the_newest(journal, sighting):
    with journal.writing() as writer:
        assert writer.add_model("better", {"backbone": "larger"}, b"what it was taught") == 2
        writer.append([sighting(0, model=2)])
    assert journal.model().fingerprint == "better"
    assert journal.taught() == b"what it was taught"
    assert journal.sightings([0])[0].model == 2


def test_of_a_forgotten_sighting_only_a_tombstone_stays(journal, sighting, fill):
    fill(journal, 3)
    with journal.writing() as writer:
        writer.forget([1])
    nothing = dict.fromkeys(("image", "content", "score", "cut", "probability", "new_probability", "feature"))
    assert journal.sightings([1]) == [sighting(1, **nothing, runners_up=(), runners_up_probability=())]
    assert journal.sightings([0, 2]) == [sighting(0), sighting(2)]
    assert sighting(1).content not in journal.find([sighting(1).content])


def test_nothing_forgotten_is_left_in_the_bytes_of_the_file(tmp_path, sighting):
    path = tmp_path / "journal.db"
    secret = sighting(1, image="a secret name.jpg", content=b"a secret content", feature=b"a secret feature" * 400)
    with Journal.open(path) as journal:
        journal.begin("a model", {}, b"genesis")
        with journal.writing() as writer:
            writer.append([sighting(0), secret, sighting(2)])
        assert any(b"secret" in file.read_bytes() for file in tmp_path.iterdir())
        with journal.writing() as writer:
            writer.forget([1])
        assert not any(b"secret" in file.read_bytes() for file in tmp_path.iterdir())


def test_what_a_reader_kept_from_being_erased_is_erased_with_the_next_block(tmp_path, sighting, fill):
    path = tmp_path / "journal.db"
    with Journal.open(path, wait=0.1) as journal, Journal.open(path, read_only=True) as reader:
        journal.begin("a model", {}, b"genesis")
        with journal.writing() as writer:
            writer.append([sighting(0, image="a secret name.jpg")])
        with reader._reading() as connection:
            connection.exec_driver_sql("SELECT image FROM sightings").all()
            with journal.writing() as writer:
                writer.forget([0])
        assert any(b"secret" in file.read_bytes() for file in tmp_path.iterdir())
        fill(journal, 1)
        assert not any(b"secret" in file.read_bytes() for file in tmp_path.iterdir())


def test_many_threads_write_and_read_one_journal(journal, fill):
    _many_threads(journal, fill)


def test_many_threads_write_and_read_one_journal_in_memory(fill):
    with Journal.open(None) as journal:
        journal.begin("a model", {}, b"genesis")
        _many_threads(journal, fill)


def _many_threads(journal, fill):
    failures = []

    def work():
        try:
            for _ in range(8):
                fill(journal, 3)
                sightings, _ = journal.tail(START)
                assert [row.number for row in sightings] == list(range(len(sightings)))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert journal.position() == Position(6 * 8 * 3, 0)


def test_journals_in_memory_are_apart_and_gone_when_closed(fill):
    with Journal.open(None) as one, Journal.open(None) as two:
        one.begin("a model", {}, b"genesis")
        fill(one, 2)
        assert two.empty
    with pytest.raises(JournalError, match="closed"):
        one.position()


def test_one_process_leaves_a_single_file(tmp_path, fill):
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin("a model", {}, b"genesis")
        fill(journal, 2)
    assert list(tmp_path.iterdir()) == [tmp_path / "journal.db"]
