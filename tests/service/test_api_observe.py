"""Images in: forms and JSON, bad ones, repeated ones, those from elsewhere, too many."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from newfound.errors import ImageError, SettingsError
from newfound.service import urls
from newfound.service.settings import Limits
from newfound.service.urls import Prefix


def test_bad_images_are_named_by_their_index_and_the_others_are_entered(server, png):
    answer = server.observe(png(0, 1), b"no image", png(3, 1), png(1, 1)[:60])
    assert answer.status_code == 422
    told = answer.json()
    assert [(s["index"], s["number"]) for s in told["sightings"]] == [(0, 0), (2, 1)]
    assert [e["index"] for e in told["errors"]] == [1, 3]
    assert [e["image"] for e in told["errors"]] == ["1.png", "3.png"]
    assert "not an image" in told["errors"][0]["error"]
    assert server.get("/v1/status")["sightings"] == 2


def test_errors_do_not_tell_where_the_server_keeps_images(server, tmp_path):
    answer = server.observe(b"no image")
    assert str(tmp_path) not in answer.text
    assert not [file for file in (tmp_path / "images").rglob("*") if file.is_file()]


def test_json_with_base64_is_as_good_as_a_form(server, png, as_json):
    body = as_json(png(0, 2), png(3, 2))
    body["images"][0]["name"] = "../../etc/my heron.gif"
    body["images"].append({"data": "%%%"})
    answer = server.client.post("/v1/observe", json=body)
    assert answer.status_code == 422
    told = answer.json()
    assert [s["image"] for s in told["sightings"]] == ["my heron.gif", "image.png"]
    assert told["errors"] == [{"index": 2, "image": None, "error": "the data are not base64"}]
    assert server.get("/v1/sightings", order="oldest")["items"][0]["image"] == "my heron.png"


@pytest.mark.parametrize(
    "body", [[], {}, {"images": []}, {"images": [7]}, {"images": [{"path": "/etc/passwd"}]}, {"images": [{"data": 7}]},
             {"images": [{"data": "", "url": ""}]}, {"images": [{"data": ""}], "again": "yes"}, {"image": []}],
)  # fmt: skip
def test_a_body_of_another_shape_is_refused(quiet, body):
    assert quiet.client.post("/v1/observe", json=body).status_code == 422


def test_other_bodies_are_refused(quiet, png):
    post = quiet.client.post
    assert post("/v1/observe", content=png(0, 1), headers={"Content-Type": "image/png"}).status_code == 415
    assert post("/v1/observe", content=b"{", headers={"Content-Type": "application/json"}).status_code == 422
    assert post("/v1/observe", files=[("pictures", png(0, 1))]).status_code == 422
    broken = {"Content-Type": "multipart/form-data; boundary=x"}
    assert post("/v1/observe", content=b"--x\r\nnonsense", headers=broken).status_code == 422
    assert quiet.get("/v1/status")["sightings"] == 0


def test_a_form_that_cannot_be_taken_says_what_it_should_be(quiet, png):
    def error(form, given="multipart/form-data; boundary=x"):
        answer = quiet.client.post("/v1/observe", content=form, headers={"Content-Type": given})
        assert answer.status_code == 422
        return answer.json()["error"]

    forgotten = b'--x\r\nContent-Disposition: form-data; name="images"\r\n\r\nheron.jpg\r\n--x--\r\n'  # without the @
    assert error(forgotten).endswith("must all be files called `images`: curl -F images=@heron.jpg")
    assert "the form cannot be read" in error(forgotten, "multipart/form-data")
    many = quiet.client.post("/v1/observe", files=[("images", png(0, 1))] * 65)
    assert (many.status_code, "Maximum number of files is 64" in many.json()["error"]) == (422, True)


def test_more_images_than_a_request_may_have_are_refused_as_a_whole(quiet, png):
    assert quiet.observe(*[png(0, 1)] * 65).status_code in (400, 422)
    assert quiet.get("/v1/status")["sightings"] == 0


def test_the_same_image_is_entered_once_unless_it_is_asked_for_again(server, png, as_json):
    server.observe(png(3, 1)).raise_for_status()
    again = server.observe(png(3, 1), png(3, 1)).json()["sightings"]
    assert [(s["repeated"], s["number"]) for s in again] == [(True, 0), (True, 0)]
    anew = server.client.post("/v1/observe", json=as_json(png(3, 1)) | {"again": True}).json()["sightings"]
    assert [(s["repeated"], s["number"]) for s in anew] == [(False, 1)]


def test_an_uploaded_image_is_kept_once_by_its_content(server, png, tmp_path):
    server.observe(png(3, 1)).raise_for_status()
    server.client.post("/v1/observe", files=[("images", ("other.png", png(3, 1)))]).raise_for_status()
    kept = [file for file in (tmp_path / "images").rglob("*") if file.is_file()]
    assert [file.read_bytes() for file in kept] == [png(3, 1)]
    assert kept[0].name.endswith("--0.png")
    assert kept[0].parent.name == kept[0].name[:2]


@pytest.mark.parametrize("where", ["elsewhere", "kept here"])
def test_an_upload_is_answered_for_its_own_bytes_though_its_file_was_overwritten(server, png, tmp_path, where):
    if where == "elsewhere":
        file = tmp_path / "camera.png"
        file.write_bytes(png(0, 1))
        server.service.discoverer.observe([file])
    else:
        server.observe(png(0, 1)).raise_for_status()
        (file,) = (tmp_path / "images").rglob("*.png")
    file.write_bytes(png(3, 1))
    (told,) = server.observe(png(0, 1)).json()["sightings"]
    assert (told["number"], told["category"], told["repeated"]) == (0, 0, True)
    kept = (tmp_path / "images").rglob("*.png")
    assert [path.read_bytes() for path in kept] == [png(0, 1)]


def test_an_upload_is_answered_for_its_own_bytes_though_the_file_they_are_known_from_is_replaced_meanwhile(
    server, png, tmp_path, monkeypatch
):
    file = tmp_path / "camera.png"
    file.write_bytes(png(0, 1))
    server.service.discoverer.observe([file])
    submit = server.service.batcher.submit

    def replaced(job):
        file.write_bytes(png(3, 1))
        return submit(job)

    monkeypatch.setattr(server.service.batcher, "submit", replaced)
    (told,) = server.observe(png(0, 1)).json()["sightings"]
    assert (told["number"], told["repeated"]) == (0, True)
    assert server.service.journal.position().sightings == 1


def test_a_key_gives_the_same_answer_again(server, png, as_json):
    body, key = as_json(png(3, 1)) | {"again": True}, {"Idempotency-Key": "k1"}
    first = server.client.post("/v1/observe", json=body, headers=key)
    second = server.client.post("/v1/observe", json=body, headers=key)
    assert first.json() == second.json()
    assert server.get("/v1/status")["sightings"] == 1
    other = server.client.post("/v1/observe", json=as_json(png(3, 2)), headers=key)
    assert other.status_code == 422
    assert "Idempotency-Key" in other.json()["error"]


def test_a_key_gives_the_same_answer_after_a_restart_though_images_are_to_be_entered_again(
    serving, tmp_path, png, as_json
):
    body, key = as_json(png(3, 1), png(0, 1), b"no image", png(3, 1)) | {"again": True}, {"Idempotency-Key": "k1"}
    body["images"][1]["name"] = "heron.gif"
    with serving(tmp_path) as server:
        server.observe(png(3, 1)).raise_for_status()
        first = server.client.post("/v1/observe", json=body, headers=key)
        assert [s["number"] for s in first.json()["sightings"]] == [1, 2, 3]
    with serving(tmp_path) as server:
        second = server.client.post("/v1/observe", json=body, headers=key)
        assert (second.status_code, second.json()) == (first.status_code, first.json())
        assert server.get("/v1/status")["sightings"] == 4
        assert [s["image"] for s in server.get("/v1/sightings")["items"]] == [
            "image.png",
            "heron.png",
            "image.png",
            "0.png",
        ]
        assert server.client.get("/v1/sightings/3/thumbnail").status_code == 200
        other = server.client.post("/v1/observe", json=body, headers={"Idempotency-Key": "k2"})
        assert [s["number"] for s in other.json()["sightings"]] == [4, 5, 6]


def test_a_form_that_is_sent_again_with_its_key_is_the_same_whatever_its_boundary(server, png):
    key = {"Idempotency-Key": "k2"}
    first = server.observe(png(3, 1), headers=key)
    assert server.observe(png(3, 1), headers=key).json() == first.json()
    assert not first.json()["sightings"][0]["repeated"]


def test_one_key_at_the_same_time_is_carried_out_once(server, png, as_json):
    body, answers = as_json(png(3, 1)) | {"again": True}, []

    def send():
        answers.append(server.client.post("/v1/observe", json=body, headers={"Idempotency-Key": "k3"}).json())

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
    assert server.get("/v1/status")["sightings"] == 1


@pytest.fixture
def elsewhere(png):
    """A web server with images, which notes what is asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path.startswith("/photos/away"):
                self.send_response(302)
                self.send_header("Location", "/secret/key.png")
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(png(3, 70))

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}", asked
        web.shutdown()


def test_images_are_fetched_from_allowed_prefixes_only(serving, tmp_path, elsewhere):
    base, asked = elsewhere
    bad = [
        f"{base}/secret/a.png", f"{base}/photos/../secret/a.png", f"{base}/photos/%2e%2e/secret/a.png",
        f"{base}/photos/%252e%252e/secret/a.png", f"{base}/photos-secret/a.png", base.replace("127.0.0.1", "localhost"),
        base.replace("http://", "http://photos@") + "/photos/a.png", "file:///etc/passwd", "gopher://x/", "",
        base.replace("http", "https") + "/photos/a.png", f"{base}/photos\\..\\secret", "http://[::1/photos/",
    ]  # fmt: skip
    with serving(tmp_path, urls=(Prefix.parse(f"{base}/photos"),)) as server:
        answer = server.client.post("/v1/observe", json={"images": [{"url": url} for url in bad]})
        assert answer.status_code == 422
        assert len(answer.json()["errors"]) == len(bad)
        assert asked == []
        good = server.client.post("/v1/observe", json={"images": [{"url": f"{base}/photos/heron.png?size=1"}]})
        assert good.json()["sightings"][0]["image"] == "heron.png"
        away = server.client.post("/v1/observe", json={"images": [{"url": f"{base}/photos/away.png"}]})
        assert "302" in away.json()["errors"][0]["error"]
        assert asked == ["/photos/heron.png?size=1", "/photos/away.png"]


def test_a_key_stands_for_addresses_and_not_for_what_is_there(serving, tmp_path, elsewhere):
    base, asked = elsewhere
    body, key = {"images": [{"url": f"{base}/photos/heron.png"}]}, {"Idempotency-Key": "k4"}
    with serving(tmp_path, urls=(Prefix.parse(f"{base}/photos"),)) as server:
        first = server.client.post("/v1/observe", json=body, headers=key)
        assert server.client.post("/v1/observe", json=body, headers=key).json() == first.json()
        assert asked == ["/photos/heron.png"], "it is fetched once"
        other = {"images": [{"url": f"{base}/photos/owl.png"}]}
        refused = server.client.post("/v1/observe", json=other, headers=key)
        assert (refused.status_code, asked) == (422, ["/photos/heron.png"])


def test_an_image_that_takes_for_ever_to_arrive_is_given_up(elsewhere):
    base, asked = elsewhere
    for seconds in (1e-9, -1.0):
        with pytest.raises(ImageError, match="to arrive"):
            urls.fetch(f"{base}/photos/heron.png", (Prefix.parse(base),), 10**6, seconds)
    assert len(asked) == 1, "where no time is left nothing is asked for"


def test_what_is_at_the_addresses_of_a_request_may_have_as_many_bytes_as_its_body(serving, tmp_path, elsewhere, png):
    base, _ = elsewhere
    limits = Limits(body=5 * len(png(3, 70)) // 2)
    with serving(tmp_path, urls=(Prefix.parse(base),), limits=limits) as server:
        body = {"images": [{"url": f"{base}/{number}.png"} for number in range(4)], "again": True}
        answer = server.client.post("/v1/observe", json=body)
        assert [s["index"] for s in answer.json()["sightings"]] == [0, 1]
        assert [e["index"] for e in answer.json()["errors"]] == [2, 3]
        assert "this request has left" in answer.json()["errors"][0]["error"]


def test_without_allowed_prefixes_nothing_is_fetched(quiet, elsewhere):
    base, asked = elsewhere
    for path in ("/v1/observe", "/v1/predict"):
        assert quiet.client.post(path, json={"images": [{"url": f"{base}/photos/a.png"}]}).status_code == 422
    assert asked == []


@pytest.mark.parametrize("text", ["photos", "ftp://a/", "http://", "http://u@h/", "http://h/a?b", "http://h/../"])
def test_what_is_no_prefix_is_refused(text):
    with pytest.raises(SettingsError, match="prefix"):
        Prefix.parse(text)


def test_a_prefix_covers_its_folder_however_it_is_spelled():
    prefix = Prefix.parse("https://Photos.example/birds")
    assert prefix.covers("https://photos.example:443/birds/a.jpg")
    assert prefix.covers("HTTPS://PHOTOS.EXAMPLE/%62irds/a.jpg")
    assert not prefix.covers("https://photos.example/birdsong/a.jpg")
    assert not prefix.covers("https://photos.example.evil/birds/a.jpg")
    assert not prefix.covers("http://photos.example/birds/a.jpg")
    assert not prefix.covers("https://photos.example:8443/birds/a.jpg")


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(serving, tmp_path, png):
    with serving(tmp_path, limits=Limits(body=2000)) as server:
        assert server.observe(b"x" * 3000).status_code == 413

        def pieces():  # without a Content-Length
            yield from [b"x" * 1000] * 4

        kind = {"Content-Type": "application/json"}
        assert server.client.post("/v1/observe", content=pieces(), headers=kind).status_code == 413
        assert server.client.post("/v1/undo", content=b"x" * 3000).status_code == 413
