"""Who may do what: tokens, cookies, other sites, other host names."""

from __future__ import annotations

import http.client

import httpx
import pytest

from newfound.errors import SettingsError
from newfound.service.settings import Settings


def _bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def guarded(serving, tmp_path_factory):
    with serving(tmp_path_factory.mktemp("guarded"), token="write-secret", read_token="read-secret") as running:
        yield running


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "example.org"])
def test_an_address_that_others_can_reach_needs_a_token(host):
    with pytest.raises(SettingsError, match="token"):
        Settings(host=host)
    Settings(host=host, token="secret")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_this_machine_needs_none(host):
    assert Settings(host=host).token is None


def test_tokens_that_cannot_be_told_apart_or_sent_are_refused():
    for values in ({"token": "a", "read_token": "a"}, {"read_token": "a"}, {"token": ""}, {"token": "ä"}):
        with pytest.raises(SettingsError):
            Settings(**values)


def test_tokens_give_the_rights_they_stand_for(guarded, png):
    body = {"files": [("images", png(3, 1))]}
    with httpx.Client(base_url=guarded.url) as client:
        refused = client.get("/v1/status")
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert client.get("/v1/status", headers=_bearer("wrong")).status_code == 401
        assert client.get("/v1/status", headers=_bearer("read-secret")).json()["rights"] == "read"
        assert client.get("/v1/status", headers=_bearer("write-secret")).json()["rights"] == "write"
        assert client.post("/v1/observe", headers=_bearer("read-secret"), **body).status_code == 403
        assert client.post("/v1/predict", headers=_bearer("read-secret"), **body).status_code == 200
        assert client.post("/v1/undo", headers=_bearer("read-secret")).status_code == 403
        assert client.post("/v1/observe", headers=_bearer("write-secret"), **body).status_code == 200


def test_every_route_with_data_needs_a_token(guarded):
    schema = httpx.get(f"{guarded.url}/openapi.json").json()
    public = {"/healthz", "/readyz", "/v1/login", "/v1/logout"}
    checked = 0
    for path, methods in schema["paths"].items():
        for method in methods:
            answer = httpx.request(method, guarded.url + path.replace("{id}", "0").replace("{number}", "0"),
                                   headers={"X-Newfound": "1"})  # fmt: skip
            assert (answer.status_code == 401) == (path not in public), (method, path)
            checked += 1
    assert checked > 20


def test_the_page_itself_and_health_are_open(guarded):
    for path in ("/", "/assets/index.html", "/healthz", "/readyz"):
        assert httpx.get(guarded.url + path).status_code == 200


def test_a_login_gives_a_cookie_that_does_not_hold_the_token(guarded):
    with httpx.Client(base_url=guarded.url, headers={"X-Newfound": "1"}) as client:
        assert client.post("/v1/login", json={"token": "wrong"}).status_code == 401
        answer = client.post("/v1/login", json={"token": "write-secret"})
        assert answer.json() == {"rights": "write"}
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert "secret" not in cookie
        assert client.get("/v1/status").json()["rights"] == "write"
        client.post("/v1/logout").raise_for_status()
        assert client.get("/v1/status").status_code == 401


def test_a_cookie_alone_changes_nothing(guarded):
    with httpx.Client(base_url=guarded.url) as client:
        client.post("/v1/login", json={"token": "write-secret"}, headers={"X-Newfound": "1"}).raise_for_status()
        assert client.post("/v1/undo").status_code == 403
        assert client.post("/v1/undo", json={}).status_code == 403
        # With the header it reaches the route, which finds nothing to undo: nobody has edited anything.
        assert client.post("/v1/undo", headers={"X-Newfound": "1"}).status_code == 422


def test_the_read_cookie_does_not_write(guarded):
    with httpx.Client(base_url=guarded.url, headers={"X-Newfound": "1"}) as client:
        assert client.post("/v1/login", json={"token": "read-secret"}).json() == {"rights": "read"}
        assert client.get("/v1/categories").status_code == 200
        assert client.post("/v1/undo").status_code == 403


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example", "X-Newfound": "1"},
])  # fmt: skip
def test_other_sites_cannot_write_through_a_browser(quiet, png, headers):
    answer = httpx.post(f"{quiet.url}/v1/observe", files=[("images", png(3, 1))], headers=headers)
    assert answer.status_code == 403
    assert quiet.get("/v1/status")["sightings"] == 0


def test_a_form_of_text_is_refused_without_the_header(quiet):
    # What a plain HTML form can send to another site without being asked.
    for kind in ("text/plain", "application/x-www-form-urlencoded", None):
        headers = {} if kind is None else {"Content-Type": kind}
        assert httpx.post(f"{quiet.url}/v1/undo", content=b"", headers=headers).status_code == 403


def test_programs_and_the_page_itself_can_write(server, png):
    files = [("images", png(3, 1))]
    for headers in ({}, {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}, {"X-Newfound": "1"}):
        assert httpx.post(f"{server.url}/v1/observe", files=files, headers=headers).status_code == 200


def test_no_other_origin_is_ever_allowed(quiet):
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = httpx.options(f"{quiet.url}/v1/observe", headers=asked)
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8460", "", "localhost.evil"])
def test_another_host_name_is_not_answered(quiet, host):
    connection = http.client.HTTPConnection(quiet.url.removeprefix("http://"))
    connection.putrequest("GET", "/v1/status", skip_host=True)
    connection.putheader("Host", host)
    connection.endheaders()
    assert connection.getresponse().status in (400, 421)
    connection.close()


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1:1234", "[::1]:80"])
def test_names_of_this_machine_are_answered(quiet, host):
    assert httpx.get(f"{quiet.url}/v1/status", headers={"Host": host}).status_code == 200


def test_pages_may_load_nothing_from_elsewhere_and_no_inline_script(quiet):
    for path in ("/", "/v1/status", "/v1/nothing", "/assets/index.html"):
        policy = quiet.client.get(path).headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert quiet.client.get(path).headers["x-content-type-options"] == "nosniff"


def test_an_error_that_nobody_thought_of_is_answered_as_carefully_as_all_else(quiet, monkeypatch):
    fine = quiet.client.get("/v1/status")

    def broken(**_):
        raise RuntimeError("a secret of the machine")

    monkeypatch.setattr(quiet.service.shelves, "now", broken)
    answer = quiet.client.get("/v1/status")
    assert answer.status_code == 500
    assert answer.json() == {"error": "unexpected RuntimeError; the log of the service says more."}
    own = {"content-length", "content-type", "date"}
    assert {n: v for n, v in answer.headers.items() if n not in own} == {
        n: v for n, v in fine.headers.items() if n not in own
    }
    assert "content-security-policy" in answer.headers
