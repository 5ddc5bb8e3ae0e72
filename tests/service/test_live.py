"""The live stream: what happens is told in order, nothing twice, nothing lost, whoever does it."""

from __future__ import annotations

import json
import signal
import threading
import time
from contextlib import contextmanager

import httpx
import pytest

from newfound.curator import Curator
from newfound.journal import Journal
from newfound.journal.rows import Position
from newfound.service.live import parse_position


class _Listener:
    """Reads a stream in a thread."""

    def __init__(self, url: str, last: str | None) -> None:
        self.messages: list[tuple[str, str, dict]] = []
        self._client = httpx.Client(timeout=httpx.Timeout(30))
        headers = {} if last is None else {"Last-Event-ID": last}
        self._request = self._client.stream("GET", f"{url}/v1/events", headers=headers)
        self.answer = self._request.__enter__()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self.answer.iter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    if "event" in fields:
                        self.messages.append((fields["event"], fields["id"], json.loads(fields["data"])))
                    fields = {}
        except httpx.HTTPError:
            pass  # closed by the test

    def of(self, kind: str) -> list[dict]:
        return [data for event, _, data in self.messages if event == kind]

    def wait_for(self, position: str) -> None:
        until = time.monotonic() + 30
        while not any(kind == "position" and at == position for kind, at, _ in self.messages):
            assert time.monotonic() < until, self.messages
            time.sleep(0.02)


@contextmanager
def _listening(url: str, last: str | None = None):
    listener = _Listener(url, last)
    try:
        yield listener
    finally:
        listener._client.close()


def test_sightings_and_new_categories_are_told_as_they_are_committed(server, png):
    with _listening(server.url) as listener:
        listener.wait_for("0-0")
        assert listener.answer.headers["content-type"].startswith("text/event-stream")
        server.observe(png(0, 1), png(3, 1)).raise_for_status()
        listener.wait_for("2-0")
        assert [(s["number"], s["name"]) for s in listener.of("sighting")] == [(0, "kind0"), (1, "new-1")]
        assert [(c["id"], c["count"]) for c in listener.of("category")] == [(3, 1)]
        assert listener.of("sighting") == server.get("/v1/sightings", order="oldest")["items"]


def test_a_page_that_comes_back_is_told_what_it_missed_and_nothing_else(server, png):
    server.observe(png(0, 1), png(3, 1)).raise_for_status()
    server.observe(png(4, 1)).raise_for_status()
    server.client.patch("/v1/categories/3", json={"name": "heron"}).raise_for_status()
    server.observe(png(4, 2)).raise_for_status()
    with _listening(server.url, "1-0") as listener:
        listener.wait_for("4-1")
        order = [(kind, at) for kind, at, _ in listener.messages if kind in ("sighting", "edit")]
        assert order == [("sighting", "2-0"), ("sighting", "3-0"), ("edit", "3-1"), ("sighting", "4-1")]
        assert listener.of("edit")[0]["kind"] == "renamed"
        assert [c["id"] for c in listener.of("category")] == [3, 4]
    with _listening(server.url, "4-1") as listener:
        listener.wait_for("4-1")
        server.observe(png(4, 3)).raise_for_status()
        listener.wait_for("5-1")
        assert [s["number"] for s in listener.of("sighting")] == [4]


def test_what_another_process_does_to_the_journal_is_told(server, png, tmp_path):
    server.observe(png(3, 1), png(4, 1)).raise_for_status()
    with _listening(server.url) as listener:
        listener.wait_for("2-0")
        with Journal.open(tmp_path / "journal.db") as journal:  # as `newfound categories RUN merge 3 4` does
            curator = Curator(journal, actor="ann")
            curator.merge([3, 4])
            curator.rename(3, "birds")
            listener.wait_for("2-2")
        assert [(e["kind"], e["actor"]) for e in listener.of("edit")] == [("merged", "ann"), ("renamed", "ann")]
        assert listener.of("category")[-1]["name"] == "birds"
        assert listener.of("gone")[0] == {"id": 4, "category": 3}
    assert server.get("/v1/categories", sort="id")["items"][3]["count"] == 2


def test_a_category_whose_last_image_leaves_is_gone_and_an_undo_says_what_it_takes_back(server, png):
    server.observe(png(3, 1), png(4, 1)).raise_for_status()
    with _listening(server.url) as listener:
        listener.wait_for("2-0")
        server.client.post("/v1/move", json={"sightings": [1], "category": 3}).raise_for_status()
        listener.wait_for("2-1")
        assert listener.of("gone") == [{"id": 4, "category": 3}]
        server.client.post("/v1/undo", json={"event": 0}).raise_for_status()
        listener.wait_for("2-2")
        assert [(e["kind"], e.get("undoes")) for e in listener.of("edit")] == [("moved", None), ("undone", 0)]


def test_a_stream_ends_when_the_server_does(serving, tmp_path):
    with serving(tmp_path) as server:
        listener = _Listener(server.url, None)
        listener.wait_for("0-0")
    listener._thread.join(20)
    assert not listener._thread.is_alive()
    listener._client.close()


@pytest.mark.parametrize("text", [None, "", "7", "a-b", "-1-2", "1-", "1-2-3", "٣-٤", "9" * 20 + "-1"])
def test_an_id_that_this_service_did_not_give_starts_from_now(text):
    assert parse_position(text) is None
    assert parse_position("12-3") == Position(12, 3)


@pytest.mark.slow
def test_the_command_stops_cleanly_when_it_is_asked_to_although_a_page_listens(process, run_folder):
    running = process(run_folder)
    listener = _Listener(running.url, None)
    listener.wait_for("0-0")
    running.popen.send_signal(signal.SIGTERM)
    running.popen.wait(20)
    listener._thread.join(20)
    assert not listener._thread.is_alive()
    assert "Traceback" not in running.popen.stderr.read()
    listener._client.close()
