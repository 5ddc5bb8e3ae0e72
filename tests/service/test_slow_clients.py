"""Clients that leave while they are sending, or send nothing more."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

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
