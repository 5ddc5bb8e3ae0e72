"""Promises of entering many blocks: the answers of one after the other, though the next is decided on meanwhile."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy.engine.base import RootTransaction
from test_keeper import KINDS, MAKERS, fixed, ids, images, keeper_of, readings, rename, weighing

from newfound.errors import FeatureError, JournalError
from newfound.journal import Journal, book, entering, keeper
from newfound.journal.book import Book
from newfound.journal.due import Due
from newfound.journal.keeper import Keeper
from newfound.journal.replaying import verify
from newfound.journal.state import to_bytes
from newfound.journal.writing import Writer


@pytest.fixture(autouse=True)
def trusting(monkeypatch):
    """Every block but the first may be decided on while the one before it is committed."""
    monkeypatch.setattr(keeper, "_TRUSTING", 1)


@pytest.fixture
def aside(monkeypatch):
    """The sizes of the blocks that were decided on while another was written and committed."""
    sizes, decide = [], entering.decide

    def watched(book, given_images, *rest):
        sizes.append(len(given_images))
        return decide(book, given_images, *rest)

    monkeypatch.setattr(entering, "decide", watched)
    return sizes


def one_after_the_other(kept: Keeper, given_images, x, block: int, **options) -> list:
    pieces = [slice(at, at + block) for at in range(0, len(given_images), block)]
    return [one for piece in pieces for one in kept.enter(given_images[piece], x[piece], **options)]


def told(entered) -> list[tuple]:
    """All that was answered, without the time."""
    return [(one.repeated, replace(one.row, time=0.0)) for one in entered]


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(MAKERS), st.lists(st.integers(0, 60), min_size=1, max_size=80), st.integers(1, 30), st.booleans()
)
def test_many_blocks_are_answered_as_if_entered_one_by_one(make, numbers, block, again):
    x = readings(4, 61)[numbers]
    seen = [images(number, 1)[0] for number in numbers]  # some come several times, in one block or in different ones
    together, apart = keeper_of(make), keeper_of(make)
    answers = together.enter_all(seen, x, block=block, again=again)
    assert told(answers) == told(one_after_the_other(apart, seen, x, block, again=again))
    assert together.book.to_bytes() == apart.book.to_bytes()
    assert verify(together.journal).fine


def test_the_next_block_is_decided_on_before_one_is_written(tmp_path, monkeypatch):
    kept = keeper_of(fixed, tmp_path / "journal.db")
    decided, decide, append = threading.Event(), entering.decide, Writer.append_packed
    in_time = []

    def deciding(*given_):
        result = decide(*given_)
        decided.set()
        return result

    def waiting(writer, *given_):
        in_time.append(decided.wait(0 if len(in_time) == 2 else 20))
        decided.clear()
        append(writer, *given_)

    kept.enter(images(0, 1), readings(1, 1))
    monkeypatch.setattr(entering, "decide", deciding)
    monkeypatch.setattr(Writer, "append_packed", waiting)
    kept.enter_all(images(1, 30), readings(2, 30), block=10)
    assert in_time == [True, True, False], "nothing comes after the last"


@pytest.mark.parametrize("make", MAKERS)
def test_snapshots_on_the_way_are_of_the_blocks_they_were_written_with(make, tmp_path, monkeypatch, aside):
    monkeypatch.setattr(Due, "after", 0.0)
    snapshot, kept_at = Writer.snapshot, []

    def checked(writer, state, **options):
        snapshot(writer, state, **options)
        kept_at.append(Book.from_bytes(state).position.sightings)
        assert Book.from_bytes(state).position == writer.position()

    kept = keeper_of(make, tmp_path / "journal.db")
    monkeypatch.setattr(Writer, "snapshot", checked)
    kept.enter_all(images(0, 100), readings(1, 100), block=8)
    assert len(aside) == 11, "all but the first and the second were decided on ahead"
    assert kept_at == [*range(8, 100, 8), 100]
    assert verify(kept.journal).fine, "the newest among them"
    assert Keeper(Journal.open(tmp_path / "journal.db")).book.to_bytes() == kept.book.to_bytes()


def test_a_snapshot_is_due_when_deciding_again_would_take_a_second_or_eight_times_as_long_as_writing_one():
    due = Due()
    due.decided += 0.9
    assert not due.now
    due.decided += 0.2
    assert due.now
    due.kept(500)
    assert not due.now
    due.saving, due.decided = 0.5, 3.9
    assert not due.now
    due.kept(500)
    due.decided += 0.2
    assert due.now, "that there still is the same snapshot changes nothing"


def test_where_another_writer_has_left_a_snapshot_since_none_is_written(tmp_path, monkeypatch):
    one = keeper_of(fixed, tmp_path / "journal.db")
    other = Keeper(Journal.open(tmp_path / "journal.db"))
    monkeypatch.setattr(Due, "after", 1e-9)
    for writer, start in ((one, 0), (other, 10), (one, 20)):
        writer.enter(images(start, 10), readings(start, 10))
    assert one.journal.snapshot_position().sightings == 20


def test_images_that_were_all_seen_before_make_no_snapshot_due(tmp_path, monkeypatch):
    monkeypatch.setattr(Due, "after", 1e-9)
    snapshot, kept_at = Writer.snapshot, []

    def counted(writer, state, **options):
        kept_at.append(writer.position().sightings)
        return snapshot(writer, state, **options)

    kept = keeper_of(fixed, tmp_path / "journal.db")
    monkeypatch.setattr(Writer, "snapshot", counted)
    for _ in range(5):
        kept.enter(images(0, 10), readings(1, 10))
        kept.enter_all(images(0, 10), readings(1, 10), block=5)
    assert kept_at == [10]


def test_a_commit_that_fails_leaves_the_blocks_before_it_and_nothing_of_those_after(tmp_path, monkeypatch, aside):
    kept = keeper_of(weighing, tmp_path / "journal.db")
    kept.enter(images(0, 10), readings(1, 60)[:10])  # all that is read has been read: commits are of blocks
    commit, times = RootTransaction.commit, []

    def failing(transaction):
        times.append(1)
        if len(times) == 3:
            raise JournalError("the disk is full")
        commit(transaction)

    with monkeypatch.context() as patch:
        patch.setattr(RootTransaction, "commit", failing)
        with pytest.raises(JournalError, match="full"):
            kept.enter_all(images(0, 60), readings(1, 60), block=10)
    assert aside == [10, 10, 10], "the fourth was decided on and is forgotten"
    assert kept.book.position.sightings == kept.journal.position().sightings == 20
    rest = kept.enter_all(images(0, 60), readings(1, 60), block=10)
    assert [one.repeated for one in rest] == [True] * 20 + [False] * 40
    assert ids(rest) == ids(keeper_of(weighing).enter(images(0, 60), readings(1, 60)))


def test_what_cannot_be_decided_on_leaves_the_blocks_before_it(aside):
    kept, x = keeper_of(fixed), readings(1, 40)
    x[25] = np.nan
    with pytest.raises(FeatureError):
        kept.enter_all(images(0, 40), x, block=10)
    assert kept.book.position.sightings == kept.journal.position().sightings == 20
    assert aside[-1] == 10
    assert verify(kept.journal).fine


@pytest.mark.parametrize("make", MAKERS)
def test_what_others_write_in_between_comes_first(make, journal_at, monkeypatch):
    one, two = keeper_of(make, journal_at), Keeper(Journal.open(journal_at), actor="bob")
    taking_up, turns = Keeper._taking_up, []

    def interrupted(self, decided, aside):
        if self is one:
            turns.append(decided is not None)
            if len(turns) == 3:
                two.enter(images(100, 8), readings(9, 8))
            if len(turns) == 6:
                rename(two, 0, "grey heron")
        return taking_up(self, decided, aside)

    monkeypatch.setattr(Keeper, "_taking_up", interrupted)
    mine = one.enter_all(images(0, 64), readings(1, 64), block=8)
    assert any(turns[2:3]), "it was decided on before the other wrote"
    rows = [row for some in one.journal.stream() for row in some]
    order = [int(row.image[:-4]) for row in rows]
    assert order == [*range(16), *range(100, 108), *range(16, 64)]
    x = np.concatenate([readings(1, 64)[:16], readings(9, 8), readings(1, 64)[16:]])
    alone = ids(keeper_of(make).enter([images(number, 1)[0] for number in order], x))
    assert [row.category for row in rows] == alone
    assert ids(mine) == alone[:16] + alone[24:]
    assert one.book.to_bytes() == two.book.to_bytes()
    assert verify(one.journal).fine


def test_where_others_write_blocks_are_decided_on_under_the_lock(tmp_path, monkeypatch, aside):
    monkeypatch.setattr(keeper, "_TRUSTING", 4)
    one = keeper_of(fixed, tmp_path / "journal.db")
    two = Keeper(Journal.open(tmp_path / "journal.db"), actor="bob")
    for start in range(0, 60, 20):
        two.enter(images(100 + start, 1), readings(start, 1))
        one.enter_all(images(start, 20), readings(start, 20), block=5)
    assert aside == []
    one.enter_all(images(60, 20), readings(7, 20), block=5)
    assert aside == [5, 5, 5]


def test_no_images_are_no_blocks():
    kept = keeper_of(fixed)
    assert kept.enter_all([], np.empty((0, KINDS))) == []
    assert kept.journal.position().sightings == 0


@pytest.mark.parametrize("make", MAKERS)
def test_what_a_snapshot_keeps_is_not_changed_by_what_is_decided_later(make):
    kept, x = keeper_of(make), readings(4, 60)
    kept.enter(images(0, 30), x[:30])
    state, expected = kept.book.state(), kept.book.to_bytes()
    kept.enter(images(30, 30), x[30:])
    assert to_bytes(state) == expected != kept.book.to_bytes()


def test_entering_many_blocks_leaves_pytorch_its_threads_and_decides_on_one(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    before, decide, inside = torch.get_num_threads(), entering.decide, []
    torch.set_num_threads(2)

    def watched(*given_to_it):
        if threading.current_thread() is not threading.main_thread():
            inside.append(torch.get_num_threads())
        return decide(*given_to_it)

    monkeypatch.setattr(entering, "decide", watched)
    later = []
    try:
        keeper_of(fixed, tmp_path / "journal.db").enter_all(images(0, 60), readings(1, 60), block=10)
        thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert torch.get_num_threads() == 2
        assert later == [2]
        assert set(inside) == {1}
    finally:
        torch.set_num_threads(before)


_float32s = st.floats(width=32, allow_nan=False)


@given(st.lists(st.lists(_float32s, min_size=3, max_size=3), max_size=5), st.integers(1, 7))
def test_readings_are_rounded_to_half_precision_as_numpy_rounds_them(rows, together):
    pytest.importorskip("torch")
    given_rows = np.array(rows, np.float32).reshape(-1, 3)
    largest = np.finfo(np.float16).max
    expected = np.clip(given_rows, -largest, largest).astype(np.float16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book, "_TOGETHER", together)
        rounded = book.stored(given_rows)
    assert rounded.tobytes() == expected.tobytes()


def test_pytorch_is_left_alone_while_another_thread_is_loading_it(monkeypatch):
    half_loaded = ModuleType("torch")
    half_loaded.__spec__ = ModuleSpec("torch", None)
    half_loaded.__spec__._initializing = True  # as the import system notes it
    monkeypatch.setitem(sys.modules, "torch", half_loaded)
    assert book.stored(np.ones((2, 3))).tolist() == [[1.0] * 3] * 2
    with entering.Aside() as aside:
        assert not aside.busy
