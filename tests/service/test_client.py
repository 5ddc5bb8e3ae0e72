"""Promises of the client: the discoverer's verbs, over HTTP, with nothing entered twice."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import httpx
import pytest
from PIL import Image

from newfound import Client, Sighting
from newfound._uploads import requests
from newfound.client import ServiceError
from newfound.errors import SettingsError
from newfound.service.settings import Limits


@pytest.fixture
def client(server):
    with Client(server.url) as client:
        yield client


@pytest.fixture
def stream(picture):
    return [picture(kind, number) for number in range(40, 43) for kind in range(5)]


def test_the_answers_are_those_of_the_discoverer_at_home(client, tiny_run, stream):
    there, here = client.observe(stream), tiny_run.discoverer().observe(stream)
    assert [(s.category, s.name, s.is_new) for s in there] == [(s.category, s.name, s.is_new) for s in here]
    assert [s.score for s in there] == pytest.approx([s.score for s in here], abs=1e-3)
    assert [s.number for s in there] == list(range(15))
    assert there[3].image is stream[3]


def test_probabilities_arrive_as_the_journal_has_them(weighing_server, stream):
    with Client(weighing_server.url) as client:
        told = client.observe(stream)
    rows = weighing_server.service.journal.sightings(range(len(stream)))
    listed = weighing_server.get("/v1/sightings", order="oldest")["items"]
    for name in ("probability", "new_probability", "runners_up_probability"):
        assert [getattr(s, name) for s in told] == [getattr(row, name) for row in rows]
    assert [tuple(s["runners_up_probability"]) for s in listed] == [s.runners_up_probability for s in told]
    assert [len(s.runners_up_probability) for s in told] == [len(s.runners_up) for s in told] == [2] * len(stream)


def test_runners_up_without_probabilities_have_none_of_them(client, server, stream):
    (told,) = client.observe(stream[:1])
    assert (len(told.runners_up), told.runners_up_probability) == (2, ())
    assert server.get("/v1/sightings")["items"][0]["runners_up_probability"] == []


def test_paths_objects_and_what_cannot_be_read_are_answered_in_order(client, picture, tmp_path):
    Image.fromarray(picture(0, 40)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    told = client.observe([tmp_path / "a.png", tmp_path / "b.png", tmp_path / "gone.png", picture(3, 40)])
    assert [s.category for s in told] == [0, None, None, 3]
    assert told[1].error
    assert "gone.png" in told[2].error


def test_images_seen_before_come_back_as_such_unless_they_are_to_be_entered_again(client, stream):
    first = client.observe(stream[:3])
    repeated = client.observe(stream[:3])
    assert [(s.number, s.repeated) for s in repeated] == [(s.number, True) for s in first]
    assert [(s.number, s.repeated) for s in client.observe(stream[:3], again=True)] == [(n, False) for n in (3, 4, 5)]


def test_predict_changes_nothing(client, stream):
    client.observe(stream[:4])
    told = client.predict(stream[3:5])
    assert [(s.category, s.is_new) for s in told] == [(3, False), (None, True)]
    assert client.status()["sightings"] == 4


def test_an_iterator_is_answered_image_by_image(client, stream):
    asked = []

    def camera():
        for image in stream[:3]:
            asked.append(len(asked))
            yield image

    answers = client.observe(camera())
    assert next(answers).number == 0
    assert asked == [0]
    assert [s.number for s in answers] == [1, 2]


def test_people_mend_categories_from_afar(client, stream):
    sightings = client.observe(stream)
    assert client.rename(3, "bittern").name == "bittern"
    new = client.split(3, [sightings[3], 8])
    assert (new.count, new.origin) == (2, "discovered")
    assert client.move([13], new.id).count == 3
    assert client.undo(client.last_edit)["undone"] == "moved"
    merged = client.merge([3, new.id])
    assert merged.id == 3
    assert client.category(new.id).id == 3
    client.promote(3)
    client.ignore(4)
    marks = {c.id: (c.promoted, c.ignored) for c in client.categories()}
    assert (marks[3], marks[4]) == ((True, False), (False, True))
    assert 4 not in {c.id for c in client.categories(ignored=False)}
    assert [s.number for s in client.sightings(3)] == [3, 8, 13]
    assert [s.number for s in client.sightings(limit=2)] == [0, 1]
    client.ignore(4)
    assert client.last_edit is None, "it was already"
    client.ignore(3, 4)
    assert client.undo(client.last_edit)["undone"] == "ignored"
    assert not client.category(3).ignored
    assert client.category(4).ignored


def test_what_cannot_be_done_is_refused_in_the_services_words(client, stream):
    client.observe(stream[:4])
    with pytest.raises(SettingsError, match="no category 99"):
        client.rename(99, "x")
    with pytest.raises(SettingsError, match="both known"):
        client.merge([0, 1])
    client.rename(3, "heron")
    first = client.last_edit
    client.rename(3, "tern")
    with pytest.raises(SettingsError, match=r"event 1, renamed by .*category 3"):
        client.undo(first)
    with pytest.raises(SettingsError, match="no number"):
        client.move([Sighting("a.png", None, None, False, None, None, error="cannot be read")], 3)


@pytest.mark.parametrize("images", ["10", ["a.png"], Path("a.png"), [1.5]])
def test_a_service_knows_images_by_their_numbers_and_says_so(client, stream, images):
    client.observe(stream[:4])
    for act in (lambda: client.move(images, 0), lambda: client.split(0, images)):
        with pytest.raises(SettingsError, match=r"is no sighting: .*their numbers"):
            act()
    with pytest.raises(SettingsError, match="no category 'heron'"):
        client.rename("heron", "x")


def test_one_sighting_need_not_be_in_a_list(client, stream):
    first, second = client.observe(stream[:2])
    client.move(first, 1)
    client.move(second.number, 1)
    assert {sighting.number for sighting in client.sightings(1)} >= {first.number, second.number}


def test_an_address_below_the_services_is_told_from_something_that_it_does_not_have(server):
    with Client(f"{server.url}/v1") as lost, pytest.raises(ServiceError, match=r"at /v1/v1/categories.*address"):
        lost.categories()


def test_what_happens_arrives_as_it_happens(client, server, stream):
    client.observe(stream[:1])
    with Client(server.url) as listening:
        events = listening.events(since="0-0")
        kinds = [next(events)[0] for _ in range(2)]
    assert "sighting" in kinds


def test_a_lost_connection_is_tried_again_and_nothing_is_entered_twice(client, stream, monkeypatch):
    send, fails = client._http.request, iter([True, False])

    def unlucky(*args, **options):
        answer = send(*args, **options)
        if next(fails, False):
            raise httpx.ReadError("lost on the way back")
        return answer

    monkeypatch.setattr(client._http, "request", unlucky)
    told = client.observe(stream[:3])
    assert [s.number for s in told] == [0, 1, 2]
    assert not any(s.repeated for s in told), "the answer is the one that was lost"
    assert client.status()["sightings"] == 3


def test_images_are_sent_in_requests_that_the_service_takes(serving, tmp_path, stream):
    with serving(tmp_path, limits=Limits(body=10_000)) as running, Client(running.url) as client:
        huge = bytes(30 << 20)  # more than fits into the buffers on the way, so that sending it is cut short
        told = client.observe([*stream, huge, stream[0]])
        assert [s.number for s in told] == [*range(15), None, 0]
        assert "image 15 has 31,457,280 bytes" in told[15].error
        assert "10,000 bytes" in told[15].error
        assert told[16].repeated


def test_photos_of_many_megabytes_do_not_share_a_request():
    photos = [bytes(6 << 20)] * 5
    assert [len(images) for images in requests(photos, 32)] == [3, 2]
    assert [len(images) for images in requests([b"small"] * 70, 32)] == [32, 32, 6]


def test_what_is_no_file_is_not_waited_for(client, tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with (tmp_path / "text.png").open("w+") as text:
        told = client.observe([tmp_path / "pipe.png", tmp_path, text])
    assert [s.error for s in told[:1]] == [f"{tmp_path / 'pipe.png'} is not a file"]
    assert "binary mode" in told[-1].error


def test_any_name_of_a_file_can_be_sent(client, picture, tmp_path):
    names = ["two\nlines.png", 'quo"te.png', os.fsdecode(b"caf\xe9.png")]
    for number, name in enumerate(names):
        Image.fromarray(picture(0, 50 + number)).save(tmp_path / name)
    told = client.observe([tmp_path / name for name in names])
    assert [(s.number, s.error) for s in told] == [(0, None), (1, None), (2, None)]
    again = client.observe([tmp_path / name for name in names], again=True)
    assert [(s.number, s.error) for s in again] == [(3, None), (4, None), (5, None)]


@pytest.mark.parametrize("url", ["127.0.0.1:8460", "localhost", "ftp://host", "http://", "http://[::1", ""])
def test_what_is_no_address_is_refused_at_once(url):
    with pytest.raises(SettingsError, match="no address of a service"):
        Client(url)
    with pytest.raises(SettingsError, match="token"):
        Client("http://host", token="schlüssel")


def test_another_kind_of_answer_is_said_to_be_one(client, monkeypatch):
    busy = httpx.Response(429, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})
    page = httpx.Response(200, text="<html>log in first</html>")
    answers = iter([busy, page])
    monkeypatch.setattr(client._http, "request", lambda *_, **__: next(answers))
    monkeypatch.setattr("newfound.client.time.sleep", lambda seconds: None)
    with pytest.raises(ServiceError, match="is this its address"):
        client.status()


def test_a_service_that_is_not_there_or_wants_a_token_says_so(serving, tmp_path, monkeypatch):
    monkeypatch.delenv("NEWFOUND_TOKEN", raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as nobody, pytest.raises(ServiceError, match="does not answer"):
        nobody.status()
    with serving(tmp_path, token="secret") as running:
        with Client(running.url) as stranger, pytest.raises(ServiceError, match="token"):
            stranger.status()
        with Client(running.url, token="secret") as friend:
            assert friend.status()["sightings"] == 0
