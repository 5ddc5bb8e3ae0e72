"""Real servers on free ports: in a thread of the tests, or as a process of its own that can be killed."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from browsing import chromium, renamed, tab, visit
from PIL import Image

from newfound.loading import load
from newfound.run import Run
from newfound.service.core import Service
from newfound.service.server import Server, listen
from newfound.service.settings import Settings

DELIBERATE = {"X-Newfound": "1"}


class Running:
    """A server that answers, and a client for it."""

    def __init__(self, url: str, service: Service) -> None:
        self.url, self.service = url, service
        self.client = httpx.Client(base_url=url, headers=DELIBERATE, timeout=60)

    def observe(self, *images: bytes, **options) -> httpx.Response:
        files = [("images", (f"{i}.png", image, "image/png")) for i, image in enumerate(images)]
        return self.client.post("/v1/observe", files=files, **options)

    def get(self, path: str, **query):
        answer = self.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()


@contextmanager
def _serving(_run: Run, folder: Path, **settings) -> Iterator[Running]:
    service = Service(replace(_run, folder=folder), folder / "journal.db", Settings(**settings))
    with listen("127.0.0.1", 0) as bound:
        server = Server(service, 0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        running = Running(f"http://127.0.0.1:{bound.getsockname()[1]}", service)
        try:
            _wait_until_ready(running.url)
            yield running
        finally:
            running.client.close()
            service.follower.end_streams()
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


def _wait_until_ready(url: str, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            if httpx.get(f"{url}/readyz", timeout=5).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        assert time.monotonic() < until, "the server does not answer"
        time.sleep(0.02)


@pytest.fixture(scope="session")
def serving(_saved_run):
    """serving(folder, **settings): a context with a server of the tiny run, whose folder this is."""
    return partial(_serving, load(_saved_run))


@pytest.fixture
def server(serving, tmp_path) -> Iterator[Running]:
    """A server of a run that knows kind0, kind1 and kind2, and has seen nothing yet."""
    with serving(tmp_path) as running:
        yield running


@pytest.fixture
def weighing_server(fit_tiny, pictures, tmp_path) -> Iterator[Running]:
    """As `server`, of a run that weighs evidence."""
    run = fit_tiny(pictures(kinds=3), method="frozen", dictionary="bayesian", threshold=0.0)
    with _serving(run, tmp_path) as running:
        yield running


@pytest.fixture(scope="session")
def png(picture):
    """png(kind, number): a picture as a file's bytes."""

    def encode(kind: int, number: int) -> bytes:
        out = io.BytesIO()
        Image.fromarray(picture(kind, number)).save(out, "PNG")
        return out.getvalue()

    return encode


@pytest.fixture(scope="module")
def quiet(serving, tmp_path_factory) -> Iterator[Running]:
    """As `server`, for all tests of a file that change nothing."""
    with serving(tmp_path_factory.mktemp("quiet")) as running:
        yield running


def _fill(server: Running, png) -> Running:
    for number in range(10, 14):
        answer = server.observe(*(png(kind, number) for kind in (0, 1, 3, 4)))
        assert answer.status_code == 200, answer.text
    return server


@pytest.fixture
def filled(server, png) -> Running:
    """A server that has seen four pictures of each of the kinds 0, 1, 3 and 4; the last two are new to it."""
    return _fill(server, png)


@pytest.fixture(scope="module")
def seen(serving, png, tmp_path_factory) -> Iterator[Running]:
    """As `filled`, for all tests of a file: only to be looked at."""
    with serving(tmp_path_factory.mktemp("seen")) as running:
        yield _fill(running, png)


@pytest.fixture(scope="session")
def as_json():
    """as_json(*images): the body of a request with images in base64."""
    return lambda *images: {"images": [{"data": base64.b64encode(image).decode()} for image in images]}


class Process:
    """`newfound serve` as a process of its own."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "newfound", "--threads", "1", "serve", str(folder), "--port", str(port)]
        self.popen = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
        assert self.popen.stderr is not None
        line = self.popen.stderr.readline()
        assert "http://" in line, line + self.popen.stderr.read()
        self.url = line.split(" at ")[1].split()[0]
        _wait_until_ready(self.url)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


@pytest.fixture
def process() -> Iterator:
    """process(folder): starts the command; what is left is killed in the end."""
    started: list[Process] = []

    def start(folder: Path) -> Process:
        started.append(Process(folder))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shown(serving, tmp_path_factory, png):
    """A server for all tests here: they find what they need, and leave the categories kind0, kind1 and kind2."""
    with serving(tmp_path_factory.mktemp("page")) as running:
        for number in range(10, 14):
            assert running.observe(*(png(kind, number) for kind in (0, 1, 3))).status_code == 200
        yield running


@pytest.fixture
def as_it_was(shown):
    """Whatever a test does, the next one finds the known names."""
    yield
    for category in (0, 1, 2):
        renamed(shown, category, f"kind{category}")


@pytest.fixture
def at(browser, shown):
    """at(place, **options): a context with a page that has loaded a view."""

    @contextmanager
    def opened(place: str = "#/", **options):
        with tab(browser, shown.url, **options) as page:
            visit(page, place)
            yield page

    return opened


@pytest.fixture
def borderline(shown, picture):
    """borderline(number): a picture under just so much noise that its score is within 0.01 of the cut."""

    def make(number: int) -> bytes:
        clear = picture(0, number)
        noise = np.random.default_rng(0).uniform(0, 255, clear.shape)
        low, high = 0.0, 0.5  # with half of the noise it is recognised no more
        for _ in range(20):
            share = (low + high) / 2
            out = io.BytesIO()
            Image.fromarray(np.round((1 - share) * clear + share * noise).astype(np.uint8)).save(out, "PNG")
            files = [("images", ("between.png", out.getvalue(), "image/png"))]
            (told,) = shown.client.post("/v1/predict", files=files).json()["sightings"]
            if 0 < told["score"] - told["cut"] < 0.01:
                break
            low, high = (share, high) if told["score"] > told["cut"] else (low, share)
        return out.getvalue()

    return make
