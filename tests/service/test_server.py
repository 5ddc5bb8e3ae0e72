"""A server answers at once, and keeps what was sent whole."""

from __future__ import annotations

import errno
import os
import pty
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import pytest

from newfound.errors import DataError
from newfound.service.images_store import _write


def test_the_end_of_an_answer_does_not_wait_until_its_beginning_was_confirmed(quiet):
    at = urlsplit(quiet.url)
    took = []
    with socket.create_connection((at.hostname, at.port), timeout=30) as client, client.makefile("rb") as answers:
        for _ in range(20):
            start = time.perf_counter()
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n" % at.netloc.encode())
            head = b"".join(iter(answers.readline, b"\r\n"))
            answers.read(int(head.lower().partition(b"content-length:")[2].split()[0]))
            took.append(time.perf_counter() - start)
    # A client's system confirms after 40 ms at the earliest what it has nothing to say to.
    assert min(took[5:]) < 0.03


def test_the_news_of_a_sighting_come_after_the_answer(server, picture, monkeypatch):
    service, stands_back = server.service, threading.Event()
    patiently = partial(service.courtesy.stand_back, most=60)
    monkeypatch.setattr(service.courtesy, "stand_back", lambda: stands_back.set() or patiently())
    with service.courtesy.answering():
        stands_back.clear()
        assert stands_back.wait(30), "the follower goes on while a request is answered"
        service.discoverer.observe([picture(3, 1)])
        service.follower.wake()
        assert service.follower.position.sightings == 0
    until = time.monotonic() + 30
    while service.follower.position.sightings == 0 and time.monotonic() < until:
        time.sleep(0.01)
    assert service.follower.position.sightings == 1


@pytest.mark.slow
def test_who_waits_at_a_terminal_is_told_what_for_and_others_read_the_address_first(process, run_folder):
    process(run_folder).kill()  # whose first line, into a pipe, must have the address
    here, there = pty.openpty()
    command = [sys.executable, "-m", "newfound", "--threads", "1", "serve", str(run_folder), "--port", "0"]
    with subprocess.Popen(command, stderr=there) as serving, open(here, errors="replace") as terminal:
        os.close(there)
        told = [terminal.readline().rstrip() for _ in range(3)]
        serving.terminate()
    assert told[:2] == [f"newfound: loading {run_folder} ...", "newfound: opening its journal ..."]
    assert told[2].startswith(f"newfound: serving {run_folder} at http://127.0.0.1:")


def test_a_file_is_written_whole_into_a_folder_that_was_not_there(tmp_path):
    path = tmp_path / "ab" / "photo.jpg"
    _write(path, b"first")
    _write(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_a_disk_that_is_full_is_no_fault_of_the_images_and_no_path_is_told(server, png, tmp_path):
    (tmp_path / "images").write_bytes(b"in the way of the folder")
    answer = server.observe(png(3, 1), headers={"Idempotency-Key": "k1"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert str(tmp_path) not in answer.text
    assert "disk" in answer.json()["error"]
    assert server.get("/v1/status")["sightings"] == 0
    (tmp_path / "images").unlink()
    assert server.observe(png(3, 1), headers={"Idempotency-Key": "k1"}).json()["sightings"][0]["number"] == 0


def test_a_disk_that_has_no_room_to_put_a_large_upload_aside_is_no_fault_of_the_images(
    server, png, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    answer = server.observe(png(3, 1) + bytes(2_000_000))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert str(tmp_path) not in answer.text
    assert server.get("/v1/status")["sightings"] == 0


def test_the_same_bytes_that_are_no_image_are_told_of_to_every_request_that_has_them(server, tmp_path, monkeypatch):
    begun, go = threading.Event(), threading.Event()
    batcher, observe = server.service.batcher, server.service.discoverer.observe

    def slow(*given, **options):
        begun.set()
        assert go.wait(30)
        return observe(*given, **options)

    monkeypatch.setattr(server.service.discoverer, "observe", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(server.observe, b"no image")
        assert begun.wait(30)
        second = pool.submit(server.observe, b"no image")
        until = time.monotonic() + 30
        while not batcher._waiting and time.monotonic() < until:
            time.sleep(0.01)
        go.set()
        answers = [answer.result(30) for answer in (first, second)]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert answers[0].json() == answers[1].json()
    assert "not an image" in answers[1].json()["errors"][0]["error"]
    assert not [file for file in (tmp_path / "images").rglob("*") if file.is_file()]


def test_a_small_copy_that_cannot_be_kept_is_shown_all_the_same(server, png, tmp_path):
    server.observe(png(3, 1)).raise_for_status()
    (tmp_path / "thumbnails").write_bytes(b"in the way of the folder")
    answer = server.client.get("/v1/sightings/0/thumbnail")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_file_that_cannot_be_written_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch, step):
    path = tmp_path / "photo.jpg"
    _write(path, b"before")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(DataError, match=r"cannot write .*photo\.jpg: No space left"):
        _write(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
