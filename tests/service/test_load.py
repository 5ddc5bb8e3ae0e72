"""Many clients at once, and a server that is killed: nothing is lost or doubled, the order is the journal's."""

from __future__ import annotations

import threading
import time
from collections import Counter

import httpx
import pytest

from newfound.journal import Journal
from newfound.journal.replaying import verify

CLIENTS = 64


class _Client(threading.Thread):
    """Sends images of its own, a few at a time, and notes what was acknowledged."""

    def __init__(self, url: str, number: int, requests: list[list[bytes]]) -> None:
        super().__init__(daemon=True)
        self.url, self.number, self.requests = url, number, requests
        self.acknowledged: list[tuple[bytes, dict]] = []
        self.in_order: list[int] = []
        self.failures: list[str] = []

    def run(self) -> None:
        with httpx.Client(base_url=self.url, headers={"X-Newfound": "1"}, timeout=120) as client:
            for images in self.requests:
                try:
                    answer = self._send(client, images)
                except httpx.HTTPError as error:
                    self.failures.append(repr(error))
                    return
                if answer.status_code != 200:
                    self.failures.append(answer.text)
                    return
                told = answer.json()["sightings"]
                self.acknowledged += zip(images, told, strict=True)
                self.in_order += [sighting["number"] for sighting in told]

    @staticmethod
    def _send(client: httpx.Client, images: list[bytes]) -> httpx.Response:
        while True:
            answer = client.post("/v1/observe", files=[("images", ("x.png", image)) for image in images])
            if answer.status_code != 429:
                return answer
            time.sleep(float(answer.headers["retry-after"]) / 4)


def _clients(url: str, png, each: int, together: int = 2) -> list[_Client]:
    """Clients whose images are all different, of all kinds."""
    return [
        _Client(url, c, [[png(c % 5, 1000 + c * 100 + r * together + i) for i in range(together)] for r in range(each)])
        for c in range(CLIENTS)
    ]


@pytest.mark.slow
def test_64_clients_lose_nothing_double_nothing_and_see_one_order(server, png, tmp_path):
    clients = _clients(server.url, png, each=4)
    for client in clients:
        client.start()
    for client in clients:
        client.join(300)
    assert [failure for client in clients for failure in client.failures] == []
    numbers = [number for client in clients for number in client.in_order]
    assert sorted(numbers) == list(range(CLIENTS * 4 * 2))  # each once, without gaps
    assert all(client.in_order == sorted(client.in_order) for client in clients)
    assert server.get("/v1/status")["sightings"] == len(numbers)
    assert sum(c["count"] for c in server.get("/v1/categories", limit=500)["items"]) == len(numbers)
    for client in clients[::8]:
        image, told = client.acknowledged[-1]
        row = server.service.journal.sightings([told["number"]])[0]
        assert server.service.store.file_of(row).read_bytes() == image
        assert row.score == told["score"]
    with Journal.open(tmp_path / "journal.db") as journal:
        assert verify(journal).fine


@pytest.mark.slow
def test_what_was_acknowledged_survives_kill_9_and_is_there_once(process, run_folder, png):
    first = process(run_folder)
    clients = _clients(first.url, png, each=50)
    for client in clients:
        client.start()
    until = time.monotonic() + 120
    while sum(len(client.acknowledged) for client in clients) < 150 and time.monotonic() < until:
        time.sleep(0.05)
    first.kill()
    for client in clients:
        client.join(120)
    acknowledged = [pair for client in clients for pair in client.acknowledged]
    assert len(acknowledged) >= 150
    with Journal.open(run_folder / "journal.db") as journal:
        there = [row for rows in journal.stream() for row in rows]
        assert max(Counter(row.content for row in there).values()) == 1
        by_number = {row.number: row for row in there}
        assert verify(journal).fine
    for _, told in acknowledged:
        assert by_number[told["number"]].score == told["score"]
    second = process(run_folder)
    with httpx.Client(base_url=second.url, headers={"X-Newfound": "1"}, timeout=60) as client:
        image, told = acknowledged[0]
        again = client.post("/v1/observe", files=[("images", ("x.png", image))]).json()["sightings"][0]
        assert again["repeated"]
        assert again["number"] == told["number"]
        assert client.get(f"/v1/sightings/{told['number']}/thumbnail").status_code == 200
        assert client.get("/v1/status").json()["sightings"] == len(there)
