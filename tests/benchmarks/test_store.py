"""Promises of the results store: what was measured is never lost, whoever crashes and however many write."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from newfound.benchmarks.store import FILE, Store, read_lines
from newfound.errors import DataError

ADD_MANY = """
import sys
from newfound.benchmarks.store import Store
folder, name = sys.argv[1:]
store = Store(folder)
print("ready", flush=True)
sys.stdin.readline()
for number in range(200):
    store.add({"key": f"{name}{number}", "text": "x" * 3000})
"""
HOLD = """
import sys, time
from newfound.benchmarks.store import Store
with Store(sys.argv[1]).claim("cell") as mine:
    print(mine, flush=True)
    time.sleep(600)
"""


def start(script: str, *arguments: object) -> subprocess.Popen:
    """Another Python process, after its first line of output."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], stdin=pipe, stdout=pipe, text=True)
    assert process.stdout.readline().strip() in ("ready", "True")
    return process


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.tuples(st.text(max_size=3), values), max_size=6))
@examples(max_examples=40)
def test_what_is_added_is_read_back_and_the_newest_counts(tmp_path_factory, added):
    store = Store(tmp_path_factory.mktemp("store"))
    expected: dict[str, dict] = {}
    for key, value in added:
        store.add({"key": key, "value": value})
        expected[key] = {"key": key, "value": value}
    assert store.results() == expected
    assert list(store.results()) == list(expected), "oldest first"
    assert len(read_lines(store.path)) == len(added), "nothing that was written is changed"


def test_an_empty_store_has_no_results(tmp_path):
    assert Store(tmp_path / "a" / "b").results() == {}
    assert read_lines(tmp_path / "nowhere.jsonl") == []


def test_a_line_that_a_crash_cut_short_loses_only_itself(tmp_path):
    store = Store(tmp_path)
    for key in ("one", "two", "last"):
        store.add({"key": key, "name": "Käfer", "scores": [{"all": 0.5}]})
    whole = store.path.read_bytes()
    begin = whole[:-1].rindex(b"\n") + 1
    for end in range(begin, len(whole)):  # every place where the last line can have been cut
        store.path.write_bytes(whole[:end])
        complete = ["last"] if end == len(whole) - 1 else []  # only its line break is missing
        assert list(store.results()) == ["one", "two", *complete], end
        store.add({"key": "next"})
        assert list(store.results()) == ["one", "two", *complete, "next"], end


def test_lines_that_are_no_results_are_passed_over(tmp_path):
    store = Store(tmp_path)
    store.add({"key": "one"})
    with store.path.open("ab") as file:
        file.write(b'\n\xff\xfe\x00\n[1]\n"key"\n{"no": "key"}\n\x00\x00\x00\x00\n')
    store.add({"key": "two"})
    assert list(store.results()) == ["one", "two"]


def test_a_result_that_is_not_json_is_refused_and_nothing_written(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        store.add({"key": "one", "score": float("nan")})
    assert not store.path.exists()


def test_two_processes_that_add_at_the_same_time_lose_nothing(tmp_path):
    writers = [start(ADD_MANY, tmp_path, name) for name in "ab"]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    assert set(Store(tmp_path).results()) == {f"{name}{number}" for name in "ab" for number in range(200)}
    assert all(json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()), "no line is broken"


def test_a_claim_is_held_by_one_and_given_back_when_its_holder_is_killed(tmp_path):
    store = Store(tmp_path)
    holder = start(HOLD, tmp_path)
    try:
        with store.claim("cell") as mine:
            assert not mine
        with store.claim("another cell") as mine:
            assert mine
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait(timeout=60)
    with store.claim("cell") as mine:
        assert mine


def test_a_claim_that_waits_gets_the_cell_when_the_other_is_done(tmp_path):
    store, got = Store(tmp_path), threading.Event()

    def waiter() -> None:
        with store.claim("cell", wait=True) as mine:
            assert mine
            got.set()

    with store.claim("cell") as mine:
        assert mine
        thread = threading.Thread(target=waiter)
        thread.start()
        assert not got.wait(0.2)
    assert got.wait(60)
    thread.join()


def test_a_claim_is_given_back_when_measuring_fails(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(RuntimeError), store.claim("cell"):
        raise RuntimeError("the training diverged")
    with store.claim("cell") as mine:
        assert mine


def test_a_store_that_cannot_be_written_says_so_before_anything_is_measured(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"cannot be written to .*file"):
        Store(tmp_path / "file")
    with pytest.raises(DataError, match=r"cannot be written to .*out"):
        Store(tmp_path / "file" / "out")
    (tmp_path / "taken" / FILE).mkdir(parents=True)
    with pytest.raises(DataError, match=r"cannot be written to .*taken"):
        Store(tmp_path / "taken")


def test_a_store_that_can_no_longer_be_written_says_so(tmp_path):
    store = Store(tmp_path / "store")
    moved = Path(tmp_path / "store").rename(tmp_path / "moved")
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(DataError, match="cannot be written"):
        store.add({"key": "one"})
    with pytest.raises(DataError, match="cannot be written"), store.claim("one"):
        pytest.fail("there is no claim")
    (moved / FILE).mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        read_lines(moved / FILE)


def test_git_leaves_the_locks_alone(tmp_path):
    store = Store(tmp_path)
    store.add({"key": "one"})
    assert sorted(path.name for path in tmp_path.iterdir()) == [".locks", FILE]
    assert (tmp_path / ".locks" / ".gitignore").read_text() == "*\n"
