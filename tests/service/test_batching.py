"""The queue: what arrives together is encoded together, in order; what is too much is sent away."""

from __future__ import annotations

import gc
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from fastapi import Request

from newfound.service.batching import Batcher, Job, QueueFull, Stopped
from newfound.service.metrics import Metrics
from newfound.service.settings import Limits
from newfound.sightings import Sighting


class _Slow:
    """A discoverer that notes what it is given together, and waits until it may answer."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list]] = []
        self.begun, self.go = threading.Event(), threading.Event()
        self.numbers: dict[str, int] = {}

    def observe(self, items, *, block, again):
        return self._answer("again" if again else "observe", items)

    def predict(self, items, *, block):
        return self._answer("predict", items)

    def _answer(self, verb, items):
        self.calls.append((verb, list(items)))
        self.begun.set()
        assert self.go.wait(30)
        if "broken" in items:
            raise RuntimeError("the disk is full")
        return [Sighting(item, 0, "a", False, 1.0, 0.5, number=self.numbers.get(item)) for item in items]


@pytest.fixture
def slow():
    return _Slow()


@pytest.fixture
def batcher(slow):
    batcher = Batcher(slow, Limits(queue=8, batch=4, wait=0.0), Metrics())
    batcher.start()
    yield batcher
    slow.go.set()
    batcher.stop()


def _busy(batcher, slow):
    """Keep the encoder at work, so that what is submitted next waits."""
    first = batcher.submit(Job(["first"]))
    assert slow.begun.wait(30)
    return first


def test_what_waits_goes_together_up_to_a_full_batch_in_the_order_of_arrival(batcher, slow):
    _busy(batcher, slow)
    answers = [batcher.submit(Job(items)) for items in (["a", "b"], ["c"], ["d", "e"], ["f"])]
    slow.go.set()
    assert [[s.image for s in answer.result(30)] for answer in answers] == [["a", "b"], ["c"], ["d", "e"], ["f"]]
    # a, b and c make three; with d and e they would be five, more than the four of a batch.
    assert slow.calls[1:] == [("observe", ["a", "b", "c"]), ("observe", ["d", "e", "f"])]


def test_a_request_that_is_larger_than_a_batch_goes_alone(batcher, slow):
    slow.go.set()
    assert len(batcher.submit(Job(list("abcdef"))).result(30)) == 6


def test_the_journal_is_asked_once_a_batch_when_its_sightings_were_entered(batcher, slow):
    entered = {"a": 7, "b": 8, "c": 3}
    asked = []

    class _Journal:
        def sightings(self, numbers):
            asked.append(list(numbers))
            return [SimpleNamespace(number=number, time=100.0 + number) for number in numbers]

    slow.keeper = SimpleNamespace(journal=_Journal())
    slow.numbers = entered
    _busy(batcher, slow)
    jobs = [Job(["a", "b"]), Job(["unreadable"]), Job(["c"])]
    answers = [batcher.submit(job) for job in jobs]
    slow.go.set()
    assert [[s.number for s in answer.result(30)] for answer in answers] == [[7, 8], [None], [3]]
    assert asked == [[7, 8, 3]]
    assert (jobs[0].times[7], jobs[0].times[8], jobs[2].times[3]) == (107.0, 108.0, 103.0)


def test_only_what_is_alike_goes_together(batcher, slow):
    _busy(batcher, slow)
    last = [batcher.submit(job) for job in (Job(["a"]), Job(["b"], commit=False), Job(["c"], again=True), Job(["d"]))]
    slow.go.set()
    last[-1].result(30)
    assert slow.calls[1:] == [("observe", ["a"]), ("predict", ["b"]), ("again", ["c"]), ("observe", ["d"])]


def test_beyond_the_queue_requests_are_refused_whole_until_there_is_room(batcher, slow):
    _busy(batcher, slow)
    waiting = batcher.submit(Job(list("abcdefg")))
    with pytest.raises(QueueFull):
        batcher.submit(Job(["h", "i"]))
    batcher.submit(Job(["h"]))
    slow.go.set()
    waiting.result(30)
    batcher.submit(Job(["h", "i"])).result(30)


@pytest.fixture
def patient(slow):
    """A queue that would wait longer than any test for a request that is on its way."""
    batcher = Batcher(slow, Limits(queue=8, batch=4, wait=300.0), Metrics())
    batcher.start()
    yield batcher
    slow.go.set()
    batcher.stop()


def test_who_is_alone_does_not_wait_for_others(patient, slow):
    slow.go.set()
    assert patient.submit(Job(["a"])).result(30)[0].image == "a"


def test_a_batch_waits_for_a_request_that_is_being_read(patient, slow):
    slow.go.set()
    with patient.expecting() as arrived:
        first = patient.submit(Job(["a"]))
        assert not slow.begun.wait(0.05)
        second = patient.submit(Job(["b"]))
        arrived()
        first.result(30)
        second.result(30)
    assert slow.calls == [("observe", ["a", "b"])]
    assert patient.submit(Job(["c"])).result(30)[0].image == "c"  # it is expected once, and has arrived once


def test_a_request_that_cannot_be_read_is_not_waited_for(patient, slow):
    slow.go.set()
    with patient.expecting():  # and its client went away: it never says that it has arrived
        first = patient.submit(Job(["a"]))
    assert first.result(30)[0].image == "a"


def test_a_failure_is_told_to_those_it_hit_and_the_next_are_served(batcher, slow):
    _busy(batcher, slow)
    broken, beside = batcher.submit(Job(["broken"])), batcher.submit(Job(["x"]))
    other = batcher.submit(Job(["y"], commit=False))
    slow.go.set()
    for answer in (broken, beside):
        with pytest.raises(RuntimeError, match="disk is full"):
            answer.result(30)
    assert other.result(30)[0].image == "y"


def test_a_request_that_was_given_up_is_not_entered(batcher, slow):
    _busy(batcher, slow)
    gone, stays = batcher.submit(Job(["gone"])), batcher.submit(Job(["stays"]))
    assert gone.cancel()
    slow.go.set()
    stays.result(30)
    assert slow.calls[1:] == [("observe", ["stays"])]


def test_stopping_answers_what_waits_and_takes_nothing_more(slow):
    batcher = Batcher(slow, Limits(), Metrics())
    batcher.start()
    answer = _busy(batcher, slow)
    later = batcher.submit(Job(["later"]))
    slow.go.set()
    batcher.stop()
    assert answer.done()
    assert later.result(0)[0].image == "later"
    with pytest.raises(Stopped):
        batcher.submit(Job(["never"]))


def test_a_full_queue_is_answered_with_429_and_when_to_come_again(serving, tmp_path, png):
    limits = Limits(queue=2)
    with serving(tmp_path, limits=limits) as server:
        hold, held = threading.Event(), threading.Event()
        decide = server.service.batcher._decide

        def waiting(*job):
            held.set()
            assert hold.wait(30)
            return decide(*job)

        server.service.batcher._decide = waiting
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(server.observe, png(0, 1))
            assert held.wait(30)
            second = pool.submit(server.observe, png(0, 2), png(0, 3))
            until = time.monotonic() + 30
            while server.service.batcher._waiting < 2 and time.monotonic() < until:
                time.sleep(0.01)
            refused = server.observe(png(0, 4))
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "1"
            kept = [path for path in server.service.store.images.rglob("*") if path.is_file()]
            assert len(kept) == 3, "what is refused leaves no file behind"
            assert server.get("/v1/categories")["total"] == 3  # reading does not wait for the encoder
            hold.set()
            assert (first.result().status_code, second.result().status_code) == (200, 200)
        assert server.observe(png(0, 4)).status_code == 200
        assert server.get("/v1/status")["sightings"] == 4
        assert "newfound_rejected_total 1.0" in server.client.get("/metrics").text


def _begun(server, length: int) -> socket.socket:
    """A connection that has announced a body of this length, and sends none of it yet."""
    at = urlsplit(server.url)
    client = socket.create_connection((at.hostname, at.port), timeout=30)
    head = f"POST /v1/observe HTTP/1.1\r\nHost: {at.netloc}\r\nX-Newfound: 1\r\nContent-Length: {length}\r\n"
    client.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n")
    return client


def test_a_full_queue_refuses_before_the_body_is_read(serving, tmp_path):
    with serving(tmp_path, limits=Limits(queue=0)) as server, _begun(server, 1000) as client:
        assert client.recv(100).startswith(b"HTTP/1.1 429")


def test_no_more_bodies_are_read_at_once_than_the_limit_and_the_others_wait(serving, tmp_path, png, as_json):
    body = json.dumps(as_json(png(0, 1))).encode()
    with (
        serving(tmp_path, limits=Limits(reads=1)) as server,
        _begun(server, len(body)) as slow,
        ThreadPoolExecutor(1) as pool,
    ):
        until = time.monotonic() + 30
        while not server.service.batcher._expected and time.monotonic() < until:
            time.sleep(0.01)
        next_one = pool.submit(server.observe, png(0, 2))
        with pytest.raises(TimeoutError):
            next_one.result(0.3)
        slow.sendall(body)
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        assert next_one.result(30).json()["sightings"][0]["number"] == 1


def _held(server, monkeypatch) -> SimpleNamespace:
    """Says when the server begins to decide, which it goes on with when it may, and when it knows a key again."""
    held = SimpleNamespace(begun=threading.Event(), go=threading.Event(), known=threading.Event())
    observe, once = server.service.discoverer.observe, server.service.idempotency.once

    def slow(*given, **options):
        held.begun.set()
        assert held.go.wait(30)
        return observe(*given, **options)

    def told(*given):
        if held.begun.is_set():
            held.known.set()
        return once(*given)

    monkeypatch.setattr(server.service.discoverer, "observe", slow)
    monkeypatch.setattr(server.service.idempotency, "once", told)
    return held


def test_of_a_request_that_waits_in_the_queue_no_body_is_in_memory(server, png, as_json, monkeypatch):
    held = _held(server, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.client.post, "/v1/observe", json=as_json(png(0, 1)))
        assert held.begun.wait(30)
        waiting = [one for one in gc.get_objects() if type(one) is Request and one.url.path == "/v1/observe"]
        bodies = [len(value) for one in waiting for value in vars(one).values() if isinstance(value, bytes)]
        held.go.set()
        assert answer.result(30).status_code == 200
    assert waiting
    assert not bodies


def test_a_request_that_is_sent_again_while_it_is_answered_holds_nobody_up(serving, tmp_path, png, monkeypatch):
    key = {"Idempotency-Key": "k1"}
    with serving(tmp_path, limits=Limits(reads=1)) as server, ThreadPoolExecutor(3) as pool:
        held, batcher = _held(server, monkeypatch), server.service.batcher
        first = pool.submit(server.observe, png(0, 1), headers=key)
        assert held.begun.wait(30)
        again = pool.submit(server.observe, png(0, 1), headers=key)
        assert held.known.wait(30)
        other = pool.submit(server.observe, png(0, 2))
        until = time.monotonic() + 5
        while not batcher._waiting and time.monotonic() < until:
            time.sleep(0.01)
        waiting = batcher._waiting
        held.go.set()
        assert first.result(30).json() == again.result(30).json()
        assert other.result(30).status_code == 200
    assert waiting == 1
