"""Every question that can be asked, to a real server."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import pytest
from PIL import Image

from newfound.crops import Box, Crop


def test_what_is_observed_comes_back_in_order_and_is_in_the_journal(server, png):
    answer = server.observe(png(0, 20), png(3, 20), png(1, 20))
    assert answer.status_code == 200
    told = answer.json()["sightings"]
    assert [s["index"] for s in told] == [0, 1, 2]
    assert [s["number"] for s in told] == [0, 1, 2]
    assert [s["image"] for s in told] == ["0.png", "1.png", "2.png"]
    assert [s["name"] for s in told] == ["kind0", "new-1", "kind1"]
    assert [s["is_new"] for s in told] == [False, True, False]
    listed = server.get("/v1/sightings", order="oldest")
    assert listed["total"] == 3
    keys = set(told[0]) - {"index"}
    assert [{k: s[k] for k in keys} for s in told] == [{k: s[k] for k in keys} for s in listed["items"]]


def test_the_status_tells_what_runs_and_what_was_found(seen):
    told = seen.get("/v1/status")
    assert told["run"].startswith("seen")
    assert told["classes"] == 3
    assert told["sightings"] == 16
    assert (told["categories"], told["discovered"]) == (5, 2)
    assert told["rights"] == "write"
    assert told["limits"]["images"] == 64
    assert told["score"] == "cosine"


def test_categories_are_told_with_counts_times_and_exemplars(seen):
    page = seen.get("/v1/categories", sort="id")
    assert page["total"] == 5
    assert page["next"] is None
    kind0, kind1, kind2, new1, new2 = page["items"]
    assert [c["name"] for c in page["items"]] == ["kind0", "kind1", "kind2", "new-1", "new-2"]
    assert [c["count"] for c in page["items"]] == [4, 4, 0, 4, 4]
    assert kind0["exemplars"] == [0, 4, 8, 12]  # the kinds came in turn: 0, 1, 3, 4, 0, 1, ...
    assert new1["exemplars"] == [2, 6, 10, 14]
    assert kind0["first_seen"] <= kind0["last_seen"]
    assert (kind2["first_seen"], kind2["doubt"], kind2["exemplars"]) == (None, None, [])
    assert kind1["named"]
    assert not new2["named"]
    assert new1["origin"] == "discovered"


def test_names_with_numbers_are_listed_in_the_order_of_the_numbers(filled):
    discovered = [c["id"] for c in filled.get("/v1/categories", origin="discovered")["items"]]
    for category, name in zip(discovered, ("Heron 10", "heron 9"), strict=True):
        filled.client.patch(f"/v1/categories/{category}", json={"name": name}).raise_for_status()
    names = [c["name"] for c in filled.get("/v1/categories", sort="name", q="heron")["items"]]
    assert names == ["heron 9", "Heron 10"]


@pytest.mark.parametrize("sort", ["newest", "size", "name", "doubt", "id"])
def test_pages_of_categories_put_together_are_the_whole_list(seen, sort):
    whole = seen.get("/v1/categories", sort=sort)["items"]
    pieces, cursor = [], None
    while True:
        page = seen.get("/v1/categories", sort=sort, limit=2, **({"cursor": cursor} if cursor else {}))
        pieces += page["items"]
        if (cursor := page["next"]) is None:
            break
    assert pieces == whole
    assert len(pieces) == 5


def test_categories_can_be_searched_and_filtered(filled):
    def names(**query):
        return [c["name"] for c in filled.get("/v1/categories", sort="id", **query)["items"]]

    assert names(q="NEW") == ["new-1", "new-2"]
    assert names(q="4") == ["new-2"]  # by id
    assert names(origin="known") == ["kind0", "kind1", "kind2"]
    filled.client.patch("/v1/categories/3", json={"ignored": True}).raise_for_status()
    assert names(origin="discovered") == ["new-2"]
    assert names(origin="discovered", ignored=True) == ["new-1", "new-2"]


def test_newest_discoveries_come_first(seen):
    assert [c["id"] for c in seen.get("/v1/categories")["items"]] == [4, 3, 2, 1, 0]


def test_a_category_tells_its_neighbours_scores_and_history(filled):
    filled.client.patch("/v1/categories/3", json={"name": "stripes"}).raise_for_status()
    told = filled.get("/v1/categories/3")
    assert told["name"] == "stripes"
    assert {n["category"] for n in told["neighbours"]} == {0, 1, 2, 4}
    scores = [n["score"] for n in told["neighbours"]]
    assert scores == sorted(scores, reverse=True)
    assert all(-1.001 <= score <= 1.001 for score in scores)
    assert sum(told["histogram"]["counts"]) == 4
    assert len(told["histogram"]["edges"]) == len(told["histogram"]["counts"]) + 1
    assert [e["kind"] for e in told["events"]] == ["renamed"]


@pytest.mark.parametrize("order", ["stream", "newest", "similar", "outliers"])
def test_the_sightings_of_a_category_come_in_the_order_that_is_asked_for(seen, order):
    pages, cursor = [], None
    for _ in range(2):
        page = seen.get("/v1/categories/3/sightings", order=order, limit=2, **({"cursor": cursor} if cursor else {}))
        assert page["total"] == 4
        pages += [s["number"] for s in page["items"]]
        cursor = page["next"]
    assert cursor is None
    expected = {"stream": [2, 6, 10, 14], "newest": [14, 10, 6, 2]}
    if order in expected:
        assert pages == expected[order]
    else:
        other = "outliers" if order == "similar" else "similar"
        turned = seen.get("/v1/categories/3/sightings", order=other)["items"]
        assert pages == [s["number"] for s in turned][::-1]
        assert sorted(pages) == [2, 6, 10, 14]


def test_what_lies_far_from_its_category_is_an_outlier(filled, png):
    answer = filled.observe(png(4, 50)).json()["sightings"][0]
    filled.client.post("/v1/move", json={"sightings": [answer["number"]], "category": 0}).raise_for_status()
    first = filled.get("/v1/categories/0/sightings", order="outliers")["items"][0]
    assert first["number"] == answer["number"]
    assert first["moved"]


def test_sightings_are_paged_and_filtered(seen):
    def numbers(**query):
        return [s["number"] for s in seen.get("/v1/sightings", **query)["items"]]

    assert numbers() == list(range(15, -1, -1))
    assert numbers(since=12, order="oldest") == [12, 13, 14, 15]
    assert numbers(new=True, order="oldest") == [2, 3]
    assert numbers(category=4) == [15, 11, 7, 3]
    assert numbers(category=4, since=8) == [15, 11]
    assert numbers(category=4, since=8, order="oldest") == [11, 15]
    assert numbers(category=4, new=True) == [3]
    assert numbers(doubtful=True, new=True) == []
    page = seen.get("/v1/sightings", limit=10)
    rest = seen.get("/v1/sightings", limit=10, cursor=page["next"])
    assert [s["number"] for s in page["items"] + rest["items"]] == list(range(15, -1, -1))
    assert rest["next"] is None
    assert seen.get("/v1/sightings", category=4, since=8)["total"] == 2


def test_a_cursor_of_another_list_is_refused(seen):
    cursor = seen.get("/v1/categories", sort="name", limit=1)["next"]
    for path in ("/v1/sightings", "/v1/categories?sort=id", "/v1/doubt", "/v1/categories/0/sightings?order=similar"):
        assert seen.client.get(path, params={"cursor": cursor}).status_code == 422, path
        assert seen.client.get(path, params={"cursor": "?"}).status_code == 422, path


def test_thumbnails_are_small_jpegs_that_may_be_kept(seen):
    answer = seen.client.get("/v1/sightings/2/thumbnail", params={"size": 320})
    assert answer.headers["content-type"] == "image/jpeg"
    assert "immutable" in answer.headers["cache-control"]
    assert "private" in answer.headers["cache-control"]
    assert Image.open(io.BytesIO(answer.content)).format == "JPEG"
    again = seen.client.get(
        "/v1/sightings/2/thumbnail", params={"size": 320}, headers={"If-None-Match": answer.headers["etag"]}
    )
    assert again.status_code == 304
    whole = seen.client.get("/v1/sightings/2/image")
    assert Image.open(io.BytesIO(whole.content)).size == (24, 24)


def test_the_thumbnail_of_a_crop_shows_what_is_inside_its_box(server, tmp_path):
    frame = Image.new("RGB", (200, 100), "red")
    frame.paste("blue", (100, 0, 200, 100))
    frame.save(tmp_path / "frame.png")
    right_half = Crop(str(tmp_path / "frame.png"), Box(0.5, 0.0, 0.5, 1.0))
    (told,) = server.service.discoverer.observe([right_half])
    answer = server.client.get(f"/v1/sightings/{told.number}/thumbnail")
    shown = Image.open(io.BytesIO(answer.content))
    assert shown.size == (100, 100)
    assert shown.getpixel((2, 50)) == pytest.approx((0, 0, 254), abs=3)
    assert server.client.get(f"/v1/sightings/{told.number}/image").status_code == 200


def test_a_picture_is_never_that_of_a_file_that_was_overwritten_since(server, png, tmp_path):
    file = tmp_path / "camera.png"
    file.write_bytes(png(0, 1))
    crop = Crop(str(file), Box(0.0, 0.0, 0.5, 1.0))
    with Image.open(file) as opened:
        told = server.service.discoverer.observe([file, crop, opened])
    assert [s.number for s in told] == [0, 1, 2]
    for number in range(3):
        assert server.client.get(f"/v1/sightings/{number}/image").status_code == 200
    file.write_bytes(png(3, 1))
    for number in range(3):
        for kind in ("thumbnail", "image"):
            assert server.client.get(f"/v1/sightings/{number}/{kind}").status_code == 404
    assert not list((tmp_path / "thumbnails").rglob("*.jpg"))


def test_no_picture_is_fetched_from_elsewhere(server, png):
    server.observe(png(0, 1)).raise_for_status()
    (row,) = server.service.journal.sightings([0])
    for image in ("http://127.0.0.1:9/frame.jpg", "http://127.0.0.1:9/frame.jpg#xywh=percent:0,0,50,50"):
        assert server.service.store.source_of(replace(row, image=image, content=None)) is None


def test_an_image_that_is_gone_is_a_drawing_with_404(filled, tmp_path):
    for file in (tmp_path / "images").rglob("*.png"):
        file.unlink()
    answer = filled.client.get("/v1/sightings/0/thumbnail")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "image/svg+xml"
    assert filled.client.get("/v1/sightings/99/thumbnail").status_code == 404


def test_predicting_changes_nothing(seen, png):
    before = seen.get("/v1/status")["sightings"]
    answer = seen.client.post("/v1/predict", files=[("images", ("x.png", png(2, 60))), ("images", png(3, 60))])
    known, found = answer.json()["sightings"]
    assert (known["name"], known["category"], known["number"]) == ("kind2", 2, None)
    assert found["name"] == "new-1"
    assert seen.get("/v1/status")["sightings"] == before


def test_what_would_be_new_is_predicted_without_a_category(server, png):
    told = server.client.post("/v1/predict", files=[("images", png(3, 61))]).json()["sightings"][0]
    assert told["is_new"]
    assert told["category"] is None


def test_the_timeline_counts_categories_as_they_appeared(seen):
    told = seen.get("/v1/timeline")
    assert told["sightings"] == list(range(17))
    assert told["categories"][:5] == [0, 1, 2, 3, 4]
    assert told["discovered"][:5] == [0, 0, 0, 1, 2]
    assert told["discovered"][-1] == 2


def test_another_cut_would_have_found_other_categories(seen):
    cut = seen.get("/v1/status")["cut"]
    same, high = seen.get("/v1/what-if", cuts=f"{cut},0.9999")
    assert same == {"cut": cut, "categories": 4, "discovered": 2, "sightings": 16}
    assert high["discovered"] > 2
    assert seen.client.get("/v1/what-if", params={"cut": "nan"}).status_code == 422


def test_the_map_shows_categories_and_sightings(seen):
    told = seen.get("/v1/map")
    assert told["method"] == "pca"
    assert sum(p["kind"] == "category" for p in told["points"]) == 5
    assert [p["id"] for p in told["points"] if p["kind"] == "sighting"] == list(range(16))


def test_the_finer_map_comes_when_it_is_ready(seen):
    for _ in range(600):
        answer = seen.client.get("/v1/map", params={"method": "tsne"})
        if answer.status_code == 200:
            break
        assert answer.status_code == 202
        time.sleep(0.1)
    assert answer.json()["method"] == "tsne"
    assert len(answer.json()["points"]) == 21


def test_health_and_metrics(seen):
    assert seen.get("/healthz") == {"status": "alive"}
    assert seen.get("/readyz") == {"status": "ready"}
    text = seen.client.get("/metrics").text
    assert 'newfound_images_total{result="entered"} 16.0' in text
    assert "newfound_categories 5.0" in text
    assert "newfound_observe_seconds_count 4.0" in text


def test_the_page_and_its_files_are_served(quiet):
    page = quiet.client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert quiet.client.get("/assets/index.html").status_code == 200
    assert quiet.client.get("/assets/../app.py").status_code == 404


@pytest.mark.parametrize("path", ["/", "/assets/main.js"])
def test_a_browser_keeps_the_page_and_asks_whether_it_has_changed(quiet, path):
    answer = quiet.client.get(path)
    assert answer.headers["cache-control"] == "no-cache"
    again = quiet.client.get(path, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["cache-control"] == "no-cache"
    assert quiet.client.get(path, headers={"If-None-Match": '"another"'}).content == answer.content


def test_what_is_not_there_is_404_in_the_shape_of_all_errors(seen):
    for path in ("/v1/categories/99", "/v1/categories/99/sightings", "/v1/sightings?category=99", "/v1/nothing"):
        answer = seen.client.get(path)
        assert answer.status_code == 404, path
        assert answer.json()["error"]
