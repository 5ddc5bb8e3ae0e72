"""Promises of the client: the discoverer's verbs, over HTTP, with nothing entered twice."""

from __future__ import annotations

import socket

import httpx
import pytest
from PIL import Image

from newfound import Client, Sighting
from newfound.client import ServiceError
from newfound.errors import SettingsError


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
    assert client.undo()["undone"] == "moved"
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


def test_what_cannot_be_done_is_refused_in_the_services_words(client, stream):
    client.observe(stream[:4])
    with pytest.raises(SettingsError, match="no category 99"):
        client.rename(99, "x")
    with pytest.raises(SettingsError, match="both known"):
        client.merge([0, 1])
    with pytest.raises(SettingsError, match="no number"):
        client.move([Sighting("a.png", None, None, False, None, None, error="cannot be read")], 3)




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
