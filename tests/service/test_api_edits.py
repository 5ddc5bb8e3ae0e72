"""Naming, merging, splitting, moving, undoing; and that a restart finds it all."""

from __future__ import annotations

import threading
import time

import pytest


def _category(server, number):
    return server.get(f"/v1/categories/{number}")


def test_a_name_is_text_and_stays(filled):
    name = '<img src=x onerror="alert(1)"> & grey heron'
    answer = filled.client.patch("/v1/categories/3", json={"name": f"  {name} "})
    assert answer.status_code == 200
    assert answer.json()["name"] == name
    assert answer.json()["named"]
    assert _category(filled, 3)["name"] == name
    assert {s["name"] for s in filled.get("/v1/sightings", category=3)["items"]} == {name}


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": " "}, {"name": "a\nb"}, {"name": 7}, {"title": "x"}])
def test_a_change_that_says_nothing_or_nonsense_is_refused(seen, body):
    answer = seen.client.patch("/v1/categories/3", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/move", {"sightings": [True], "category": 0}), ("/v1/move", {"sightings": [1], "category": "0"}),
     ("/v1/categories/merge", {"categories": [3, "4"]}), ("/v1/categories/merge", {"categories": [3.0, True]}),
     ("/v1/categories/3/split", {"sightings": ["2"]}), ("/v1/undo", {"event": True})],
)  # fmt: skip
def test_what_is_no_number_is_not_taken_for_one(seen, path, body):
    answer = seen.client.post(path, json=body)
    assert answer.status_code == 422
    assert "should be a valid integer" in answer.json()["error"]


def test_a_refused_change_is_told_in_words_for_people(seen):
    def error(**given):
        return seen.client.patch("/v1/categories/3", headers={"Content-Type": "application/json"}, **given).json()

    assert error(content=b'{"nam') == {"error": "the body is not JSON."}
    assert error(content=b"{}") == {"error": "the request: give a name, ignored or promoted"}


def test_a_refused_change_says_nothing_of_where_the_journal_lies(seen):
    answers = [seen.client.post("/v1/move", json={"sightings": [10**6], "category": 0}),
               seen.client.post("/v1/undo", json={"event": 10**6})]  # fmt: skip
    told = [answer.json()["error"] for answer in answers]
    assert told == ["there is no sighting 1000000 in the journal.", "there is no event 1000000 in the journal."]


def test_merged_categories_are_found_under_both_ids(filled):
    merged = filled.client.post("/v1/categories/merge", json={"categories": [3, 4]}).json()
    assert (merged["id"], merged["count"]) == (3, 8)
    assert merged["exemplars"] == [2, 3, 6, 7, 10, 11]
    assert _category(filled, 4)["id"] == 3
    assert filled.get("/v1/categories")["total"] == 4
    assert len(filled.get("/v1/sightings", category=4)["items"]) == 8


def test_two_known_categories_stay_apart(seen):
    answer = seen.client.post("/v1/categories/merge", json={"categories": [0, 1]})
    assert answer.status_code == 422
    assert "both known" in answer.json()["error"]


def test_a_split_makes_a_category_of_some_sightings(filled):
    made = filled.client.post("/v1/categories/3/split", json={"sightings": [6, 14]}).json()
    assert (made["id"], made["count"], made["exemplars"]) == (5, 2, [6, 14])
    assert _category(filled, 3)["exemplars"] == [2, 10]
    assert [s["moved"] for s in filled.get("/v1/categories/5/sightings")["items"]] == [True, True]


def test_moved_sightings_are_where_they_were_put(filled):
    told = filled.client.post("/v1/move", json={"sightings": [2], "category": 0}).json()
    assert (told["id"], told["count"]) == (0, 5)
    assert told["exemplars"] == [0, 2, 4, 8, 12]
    assert _category(filled, 3)["first_seen"] > filled.get("/v1/sightings", since=2, order="oldest")["items"][0]["time"]


def test_undo_takes_back_what_was_done_last(filled):
    before = filled.get("/v1/categories", sort="id")["items"]
    filled.client.post("/v1/categories/merge", json={"categories": [3, 4]}).raise_for_status()
    filled.client.post("/v1/move", json={"sightings": [0], "category": 1}).raise_for_status()
    assert filled.client.post("/v1/undo").json() == {"undone": "moved", "event": 1}
    assert filled.client.post("/v1/undo").json() == {"undone": "merged", "event": 0}
    assert filled.get("/v1/categories", sort="id")["items"] == before
    nothing = filled.client.post("/v1/undo")
    assert nothing.status_code == 422
    assert nothing.json()["error"] == "there is nothing to undo."


def test_every_edit_tells_its_number_and_undo_takes_back_just_that_one(filled):
    post, patch = filled.client.post, filled.client.patch
    mine = patch("/v1/categories/3", json={"name": "heron"}).json()["edits"]
    theirs = patch("/v1/categories/4", json={"name": "tern"}).json()["edits"]
    both = patch("/v1/categories/4", json={"ignored": True, "promoted": True}).json()["edits"]
    moved = post("/v1/move", json={"sightings": [2], "category": 0}).json()["edits"]
    split = post("/v1/categories/3/split", json={"sightings": [6]}).json()["edits"]
    merged = post("/v1/categories/merge", json={"categories": [0, 3]}).json()["edits"]
    assert [mine, theirs, both, moved, split, merged] == [[0], [1], [2, 3], [4], [5], [6]]
    assert post("/v1/categories/merge", json={"categories": [0, 3]}).json()["edits"] == [], "they are one already"
    assert post("/v1/undo", json={"event": merged[0]}).json() == {"undone": "merged", "event": 6}
    assert post("/v1/undo", json={"event": mine[0]}).json() == {"undone": "renamed", "event": 0}
    assert [_category(filled, number)["name"] for number in (3, 4)] == ["new-1", "tern"]


def test_an_edit_that_a_later_one_builds_on_is_not_taken_back_and_the_answer_says_which(filled):
    filled.client.patch("/v1/categories/3", json={"name": "heron"}).raise_for_status()
    filled.client.patch("/v1/categories/3", json={"name": "tern"}).raise_for_status()
    refused = filled.client.post("/v1/undo", json={"event": 0})
    assert refused.status_code == 409
    assert ": event 1, renamed by" in refused.json()["error"]
    assert "category 3" in refused.json()["error"]
    assert _category(filled, 3)["name"] == "tern"


@pytest.mark.parametrize("event", [99, -1, 2**60, "0", 0.5, [0]])
def test_an_event_that_is_none_cannot_be_taken_back(seen, event):
    answer = seen.client.post("/v1/undo", json={"event": event})
    assert answer.status_code == 422
    assert answer.json()["error"]


def test_of_several_changes_in_one_request_all_are_made_or_none(filled):
    refused = filled.client.patch("/v1/categories/0", json={"name": "another", "ignored": True})
    assert refused.status_code == 422, "a known category cannot be ignored"
    assert _category(filled, 0)["name"] == "kind0"


def test_what_is_so_already_makes_no_edit(filled):
    patch, post = filled.client.patch, filled.client.post
    for edits in (2, 0):
        answer = patch("/v1/categories/3", json={"name": "heron", "ignored": True})
        assert (answer.json()["name"], len(answer.json()["edits"])) == ("heron", edits)
    for edits in (1, 0):
        answer = post("/v1/move", json={"sightings": [2], "category": 0})
        assert (answer.json()["id"], len(answer.json()["edits"])) == (0, edits)


def test_a_refused_request_that_begins_with_what_is_so_already_takes_back_nothing_of_others(filled):
    filled.client.patch("/v1/categories/3", json={"name": "heron"}).raise_for_status()
    refused = filled.client.patch("/v1/categories/0", json={"name": "kind0", "ignored": True})
    assert refused.status_code == 422
    assert _category(filled, 3)["name"] == "heron"


def test_ignoring_and_promoting(filled):
    assert filled.client.patch("/v1/categories/3", json={"ignored": True}).json()["ignored"]
    unnamed = filled.client.patch("/v1/categories/4", json={"promoted": True})
    assert unnamed.status_code == 422
    assert filled.client.patch("/v1/categories/4", json={"name": "heron", "promoted": True}).json()["promoted"]
    assert not filled.client.patch("/v1/categories/3", json={"ignored": False}).json()["ignored"]


def test_sightings_and_categories_that_are_not_there_cannot_be_edited(seen):
    post = seen.client.post
    assert seen.client.patch("/v1/categories/99", json={"name": "x"}).status_code == 404
    assert post("/v1/categories/99/split", json={"sightings": [1]}).status_code == 404
    assert post("/v1/categories/merge", json={"categories": [3, 99]}).status_code == 422
    assert post("/v1/move", json={"sightings": [99], "category": 0}).status_code == 422
    assert post("/v1/move", json={"sightings": [1], "category": 99}).status_code == 422


def test_what_a_person_decided_on_leaves_the_doubt_queue_until_it_is_taken_back(filled):
    overview = filled.service.overview
    with overview._turn:  # the service's own thread looks at the journal too
        overview._margin = 2.0  # every score of a cosine is this near to the cut
        overview._begin()
    while not overview.complete:
        overview.catch_up()
        time.sleep(0.01)
    queue = filled.get("/v1/doubt", limit=10)
    assert queue["total"] == 16
    assert [s["number"] for s in queue["items"]] == list(range(15, 5, -1))
    rest = filled.get("/v1/doubt", limit=10, cursor=queue["next"])
    assert [s["number"] for s in rest["items"]] == list(range(5, -1, -1))
    assert rest["next"] is None
    first = queue["items"][0]
    assert first["candidates"][0] == {"category": 4, "name": "new-2", "score": first["score"]}
    assert len(first["candidates"]) == 3
    filled.client.post("/v1/move", json={"sightings": [15], "category": 4}).raise_for_status()
    assert filled.get("/v1/doubt")["items"][0]["number"] == 14
    filled.client.post("/v1/undo").raise_for_status()
    assert filled.get("/v1/doubt")["items"][0]["number"] == 15


def test_a_restart_finds_it_all(serving, tmp_path, png):
    with serving(tmp_path) as first:
        first.observe(*(png(kind, number) for number in (1, 2) for kind in (0, 3, 4))).raise_for_status()
        first.client.patch("/v1/categories/3", json={"name": "heron"}).raise_for_status()
        first.client.post("/v1/move", json={"sightings": [2], "category": 3}).raise_for_status()
        told = [first.get("/v1/categories"), first.get("/v1/sightings"), first.get("/v1/timeline")]
    with serving(tmp_path) as second:
        assert [second.get("/v1/categories"), second.get("/v1/sightings"), second.get("/v1/timeline")] == told
        assert second.client.post("/v1/undo").json()["undone"] == "moved"


def test_edits_reads_and_new_images_at_once_hold_nobody_up(filled, png):
    """Once, an edit that built its answer under the book's lock and a reader that held the other waited for ever."""
    found = [c["id"] for c in filled.get("/v1/categories", origin="discovered")["items"]]
    done: list[int] = []

    def edit(turn: int) -> int:
        merged = filled.client.post("/v1/categories/merge", json={"categories": found})
        undone = filled.client.post("/v1/undo")
        return (merged.status_code, undone.status_code)[turn % 2]

    def read(turn: int) -> int:
        where = ("/v1/categories", "/v1/sightings", f"/v1/categories/{found[0]}")[turn % 3]
        return filled.client.get(where).status_code

    def look(turn: int) -> int:
        return filled.observe(png(turn % 5, 200 + turn)).status_code

    def work(what) -> None:
        done.extend(what(turn) for turn in range(6))

    threads = [threading.Thread(target=work, args=(what,), daemon=True) for what in (edit, read, read, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(done) == 24, "nobody waits for ever"
    assert set(done) == {200}
