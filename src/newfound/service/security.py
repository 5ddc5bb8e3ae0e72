"""Who may do what. All of it happens before a route is reached, in one place.

- Host: without a token only names of this machine are answered, so that a page elsewhere whose name was made to point
  here (DNS rebinding) gets nothing. With a token such a page has no cookie of ours.
- Rights: a bearer token, or a cookie that `POST /v1/login` set; compared in constant time.
- Cross-site requests: what is not GET needs a header that a page elsewhere cannot send (Authorization, X-Newfound), as
  no cross-origin request is ever allowed; without a token, a request that no browser sends for another site will do.
- Limits: the size of a body, as it arrives, how long it stays away, and the time that a request takes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any

from anyio import fail_after
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from newfound.service.courtesy import Courtesy
from newfound.service.problems import Stalled, problem, unexpected
from newfound.service.settings import Limits, Settings, is_loopback

log = logging.getLogger("newfound.service")

COOKIE = "newfound"
READ, WRITE = "read", "write"
_OPEN = ("/healthz", "/readyz", "/v1/login", "/v1/logout", "/openapi.json", "/docs", "/")
_READS = ("/v1/predict",)  # POST, but changes nothing
_ENDLESS = "/v1/events"
_SLOWEST = 4096  # bytes a second that a body has to arrive at, once patience with it is at an end
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; style-src 'self'; script-src 'self'; "
    "object-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class TooLarge(Exception):
    """The body of a request is larger than the limit."""


class Guard:
    """An ASGI application around another: lets through what may pass, and answers the rest."""

    def __init__(self, app: ASGIApp, settings: Settings, courtesy: Courtesy) -> None:
        self._app, self._settings, self._courtesy = app, settings, courtesy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, message = refusal
            extra = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            await problem(status, message, extra)(scope, receive, _with_headers(send))
            return
        await self._within_limits(scope, receive, _with_headers(send))

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if not self._is_our_host(headers.get("host", "")):
            return 421, "this service does not answer for that host name."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._settings.limits.body:
            return 413, self._too_large()
        path, safe = scope["path"], scope["method"] in ("GET", "HEAD", "OPTIONS")
        rights, proven = self._rights(headers)
        scope.setdefault("state", {})["rights"] = rights
        if not safe and not self._is_deliberate(headers, proven):
            return 403, "this request may come from another site: send the header X-Newfound: 1, or a bearer token."
        if path in _OPEN or path.startswith("/assets/"):
            return None
        if rights is None:
            return 401, "a token is needed: Authorization: Bearer TOKEN."
        if rights == READ and not safe and path not in _READS:
            return 403, "this token may read and not write."
        return None

    def _is_our_host(self, host: str) -> bool:
        if self._settings.token is not None:
            return True
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        return is_loopback(name) or name.lower() == self._settings.host.lower()

    def _rights(self, headers: Headers) -> tuple[str | None, str]:
        """What a request may do, and how it has shown that: "header", "cookie" or "machine"."""
        if self._settings.token is None:
            return WRITE, "machine"
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return rights_of(given.strip(), self._settings), "header"
        return _rights_of_cookie(headers.get("cookie", ""), self._settings), "cookie"

    def _is_deliberate(self, headers: Headers, proven: str) -> bool:
        """Whether a request that changes something cannot come from a page of another site."""
        if proven == "header":
            return True
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != headers.get("host", "").lower():
            return False
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return False
        if headers.get("x-newfound") == "1":
            return True
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return proven == "machine" and kind in ("application/json", "multipart/form-data")

    async def _within_limits(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        work = self._app(scope, _awaited(receive, self._settings.limits), sending)
        if scope["path"] == _ENDLESS:
            await work
            return
        try:
            with self._courtesy.answering():
                await asyncio.wait_for(work, self._settings.limits.seconds)
        except TooLarge:
            if not started:
                await problem(413, self._too_large())(scope, receive, send)
        except asyncio.TimeoutError:
            if not started:
                message = (
                    f"this took more than {self._settings.limits.seconds:g} s and may yet be done; "
                    "with the same Idempotency-Key it can be asked for again."
                )
                await problem(503, message, {"Retry-After": "5"})(scope, receive, send)
        except ClientDisconnect:  # nobody is left to be answered
            log.info("a client left while it was sending %s; nothing of it was entered", scope["path"])
        except Exception as error:
            if not started:
                await unexpected(error)(scope, receive, send)
            raise  # for the log

    def _too_large(self) -> str:
        return f"a request may have {self._settings.limits.body:,} bytes: send fewer images at a time."


def rights_of(token: str, settings: Settings) -> str | None:
    """What a token gives the right to; all tokens are compared, in constant time."""
    rights = None
    for known, right in ((settings.read_token, READ), (settings.token, WRITE)):
        if known is not None and hmac.compare_digest(token.encode(), known.encode()):
            rights = right
    return rights


def cookie_for(rights: str, settings: Settings) -> str:
    """The value of a cookie with these rights: it proves that the token was known, and does not hold it."""
    token = settings.token if rights == WRITE else settings.read_token
    if token is None:
        raise ValueError(f"no token gives the right to {rights}")
    return hmac.new(token.encode(), b"newfound cookie: " + rights.encode(), hashlib.sha256).hexdigest()


def _rights_of_cookie(header: str, settings: Settings) -> str | None:
    try:
        morsel: Any = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    rights = None
    if morsel is not None:
        for known, right in ((settings.read_token, READ), (settings.token, WRITE)):
            if known is not None and hmac.compare_digest(morsel.value.encode(), cookie_for(right, settings).encode()):
                rights = right
    return rights


def _awaited(receive: Receive, limits: Limits) -> Callable[[], Awaitable[Message]]:
    """A body that may not say how long it is, counted as it arrives, and that may not stay away.

    Only the time in which it is waited for counts: a service that is busy elsewhere does not make its clients slow.
    """
    seen, waited, whole = 0, 0.0, False

    async def receiving() -> Message:
        nonlocal seen, waited, whole
        if whole:  # what is waited for now is that the client leaves
            return await receive()
        start = time.monotonic()
        try:
            with fail_after(limits.patience + seen / _SLOWEST - waited):
                message = await receive()
        except TimeoutError:
            raise Stalled from None
        waited += time.monotonic() - start
        seen += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if seen > limits.body:
            raise TooLarge
        return message

    return receiving


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sending
