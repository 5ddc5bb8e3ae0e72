"""Clients that leave while they are sending, or send nothing more."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from newfound.service.settings import Limits

JSON, FORM = "application/json", "multipart/form-data; boundary=b"
BEGINNINGS = {
    JSON: b'{"images": [',
    FORM: b'--b\r\nContent-Disposition: form-data; name="images"; filename="a"\r\n\r\n',
}


def _until(happens: Callable[[], object], seconds: float = 30) -> None:
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until
        time.sleep(0.01)


def _begun(server, path: str, kind: str, body: bytes, length: int) -> socket.socket:
    """A connection that has announced a body of this length, and sent this much of it."""
    at = urlsplit(server.url)
    client = socket.create_connection((at.hostname, at.port), timeout=30)
    head = f"POST {path} HTTP/1.1\r\nHost: {at.netloc}\r\nX-Newfound: 1\r\nContent-Length: {length}\r\n"
    client.sendall(f"{head}Content-Type: {kind}\r\n\r\n".encode() + body)
    return client


@pytest.fixture
def logged(caplog):
    """What the server logs, uvicorn included, which passes nothing on."""
    caplog.set_level(logging.INFO, "newfound.service")
    uvicorn = logging.getLogger("uvicorn.error")
    uvicorn.addHandler(caplog.handler)
    yield caplog
    uvicorn.removeHandler(caplog.handler)


@pytest.mark.parametrize("kind", [JSON, FORM])
@pytest.mark.parametrize("path", ["/v1/observe", "/v1/predict"])
def test_a_client_that_leaves_while_it_is_sending_costs_a_line_and_enters_nothing(server, logged, png, path, kind):
    batcher = server.service.batcher
    with _begun(server, path, kind, BEGINNINGS[kind], 1000):
        _until(lambda: batcher._expected)
    _until(lambda: not batcher._expected)
    assert server.observe(png(0, 1)).json()["sightings"][0]["number"] == 0
    (line,) = logged.records
    assert (line.levelno, line.exc_info) == (logging.INFO, None)
    assert line.getMessage() == f"a client left while it was sending {path}; nothing of it was entered"


def _answer(client: socket.socket) -> bytes:
    """All that the server says, until it closes the connection."""
    told = b""
    with suppress(ConnectionResetError):  # by what came too late
        while more := client.recv(4096):
            told += more
    return told


@pytest.mark.parametrize("kind", [JSON, FORM])
@pytest.mark.parametrize("pause", [None, 0.1], ids=["nothing", "a byte now and then"])
def test_bodies_that_stall_leave_their_places_to_others(serving, tmp_path, png, kind, pause):
    with (
        serving(tmp_path, limits=Limits(reads=2, patience=0.5)) as server,
        _begun(server, "/v1/observe", kind, BEGINNINGS[kind], 1000) as one,
        _begun(server, "/v1/predict", kind, BEGINNINGS[kind], 1000) as other,
        ThreadPoolExecutor(2) as pool,
    ):
        _until(lambda: server.service.batcher._expected == 2)
        if pause is not None:
            pool.submit(_trickle, one, pause)
            pool.submit(_trickle, other, pause)
        assert server.observe(png(0, 1), timeout=20).json()["sightings"][0]["number"] == 0
        for client in (one, other):
            told = _answer(client)
            assert told.startswith(b"HTTP/1.1 408")
            assert b"arrives too slowly" in told


def _trickle(client: socket.socket, pause: float) -> None:
    with suppress(OSError):  # until it is given up
        while True:
            client.sendall(b" ")
            time.sleep(pause)


def test_a_body_that_takes_its_time_and_arrives_is_read(serving, tmp_path, png, as_json):
    body = json.dumps(as_json(png(0, 1))).encode()
    body = b" " * 8192 + body + b" " * (9 * 8192 - len(body))
    with (
        serving(tmp_path, limits=Limits(patience=0.5)) as server,
        _begun(server, "/v1/observe", JSON, body[:8192], len(body)) as client,
    ):
        for at in range(8192, len(body), 8192):
            time.sleep(0.2)
            client.sendall(body[at : at + 8192])
        assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_an_edit_that_stalls_is_told_so(serving, tmp_path):
    with (
        serving(tmp_path, limits=Limits(patience=0.5)) as server,
        _begun(server, "/v1/categories/merge", JSON, b"{", 100) as client,
    ):
        assert _answer(client).startswith(b"HTTP/1.1 408")
