"""The verbs of a local discoverer, for a service that runs elsewhere."""

from __future__ import annotations

import base64
import io
import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from newfound.datasets import is_finite, item_name, iter_source
from newfound.errors import ImageError, MissingFileError, NewfoundError, SettingsError
from newfound.sightings import Category, Sighting

if TYPE_CHECKING:
    import httpx

_AT_ONCE = 32  # images in a request
_PATIENCE = 60.0  # seconds to go on asking a service that is full


class ServiceError(NewfoundError, RuntimeError):
    """A service that cannot be reached, refuses, or does not answer as it should."""


class Client:
    """Observes and mends over HTTP as a :class:`~newfound.Discoverer` does at home.

    A request that fails on the way is sent again with the same key, and one that the service has no room for is sent
    again when it says so: nothing is entered twice.

    Args:
        url: of the service, such as http://127.0.0.1:8460.
        token: what it was started with; without it, the environment variable NEWFOUND_TOKEN.
        timeout: seconds to wait for an answer.

    Example:
        >>> with Client("http://127.0.0.1:8460") as d:  # doctest: +SKIP
        ...     for s in d.observe("incoming/"):
        ...         print(s.image, s.category, s.name)
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 60.0) -> None:
        try:
            import httpx
        except ImportError:
            raise SettingsError('a client needs httpx: pip install "newfound[serve]".') from None
        token = token or os.environ.get("NEWFOUND_TOKEN")
        headers = {"X-Newfound": "1"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self.url = url.rstrip("/")
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout)

    def observe(
        self, source: Any, *, block: int = _AT_ONCE, again: bool = False
    ) -> list[Sighting] | Iterator[Sighting]:
        """Send images in order to be decided on; see `Discoverer.observe`."""
        sightings = self._sent("observe", source, block, again)
        return list(sightings) if is_finite(source) else sightings

    def predict(self, source: Any, *, block: int = _AT_ONCE) -> list[Sighting] | Iterator[Sighting]:
        """Ask what images would be told as things stand; nothing changes."""
        sightings = self._sent("predict", source, block)
        return list(sightings) if is_finite(source) else sightings

    def categories(self, *, ignored: bool = True) -> list[Category]:
        """All living categories by id."""
        pages = self._pages("/v1/categories", sort="id", ignored=str(ignored).lower())
        return [self._category(told) for told in pages]

    def category(self, category: int) -> Category:
        """A category by id; a merged one is followed to where it lives now."""
        return self._category(self._ask("GET", f"/v1/categories/{int(category)}"))

    def sightings(self, category: int | None = None, *, limit: int | None = None) -> list[Sighting]:
        """What the journal holds, in order: all of it, or what belongs to a category now."""
        where = "/v1/sightings" if category is None else f"/v1/categories/{int(category)}/sightings"
        order = "oldest" if category is None else "stream"
        return [_sighting(told, told["image"]) for told in islice(self._pages(where, order=order), limit)]

    def rename(self, category: int, name: str) -> Category:
        """Give a category a name of one's own."""
        return self._category(self._ask("PATCH", f"/v1/categories/{int(category)}", json={"name": name}))

    def merge(self, categories: Iterable[int]) -> Category:
        """Make one category of several."""
        return self._category(self._ask("POST", "/v1/categories/merge", json={"categories": list(categories)}))

    def split(self, category: int, images: Iterable[Sighting | int]) -> Category:
        """Make a new category of some sightings of one, given as such or by their numbers."""
        body = {"sightings": _numbers(images)}
        return self._category(self._ask("POST", f"/v1/categories/{int(category)}/split", json=body))

    def move(self, images: Iterable[Sighting | int], category: int) -> Category:
        """Say that sightings belong to a category."""
        return self._category(self._ask("POST", "/v1/move", json={"sightings": _numbers(images), "category": category}))

    def ignore(self, *categories: int, on: bool = True) -> None:
        """Mark categories as junk, or no longer."""
        for category in categories:
            self._ask("PATCH", f"/v1/categories/{int(category)}", json={"ignored": on})

    def promote(self, *categories: int, on: bool = True) -> None:
        """Mark named discoveries as classes to be taught, or no longer."""
        for category in categories:
            self._ask("PATCH", f"/v1/categories/{int(category)}", json={"promoted": on})

    def undo(self) -> dict[str, Any]:
        """Take back what a person did last; says what that was."""
        event: dict[str, Any] = self._ask("POST", "/v1/undo")
        return event

    def status(self) -> dict[str, Any]:
        """What the service runs, and how much it has seen."""
        status: dict[str, Any] = self._ask("GET", "/v1/status")
        return status

    def events(self, since: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
        """What happens from now on, or from a position on, as kind and details; it never ends by itself."""
        import httpx

        headers = {"Last-Event-ID": since} if since else {}
        try:
            with self._http.stream("GET", "/v1/events", headers=headers, timeout=None) as response:
                if response.status_code != 200:
                    response.read()
                    raise self._refusal(response)
                kind = "message"
                for line in response.iter_lines():
                    if line.startswith("event:"):
                        kind = line[6:].strip()
                    elif line.startswith("data:"):
                        yield kind, json.loads(line[5:])
        except httpx.HTTPError as error:
            raise ServiceError(f"{self.url} ended the stream of events: {error or type(error).__name__}.") from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _sent(self, verb: str, source: Any, block: int, again: bool = False) -> Iterator[Sighting]:
        items = iter_source(source)
        size = block if is_finite(source) else 1
        while chunk := list(islice(items, size)):
            sent: list[int] = []
            images: list[tuple[str, bytes]] = []
            errors: dict[int, str] = {}
            for index, item in enumerate(chunk):
                try:
                    images.append((os.path.basename(item_name(item, index)), _bytes(item)))
                    sent.append(index)
                except (ImageError, MissingFileError, OSError) as error:
                    errors[index] = str(error)
            answers: dict[int, dict[str, Any]] = {}
            if images:
                key = {"Idempotency-Key": uuid.uuid4().hex}
                told = self._ask("POST", f"/v1/{verb}", headers=key, partly=True, **_body(images, again))
                answers = {sent[one["index"]]: one for one in told["sightings"]}
                errors |= {sent[one["index"]]: one["error"] for one in told.get("errors", ())}
            for index, item in enumerate(chunk):
                if index in answers:
                    yield _sighting(answers[index], item)
                else:
                    yield Sighting(item, None, None, False, None, None, error=errors.get(index, "was not answered"))

    def _pages(self, where: str, **query: Any) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        while True:
            page = self._ask("GET", where, params=query | {"limit": 500} | ({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def _ask(self, verb: str, where: str, *, partly: bool = False, **options: Any) -> Any:
        """The answer's JSON. ``partly``: 422 is an answer too, where some images were good."""
        import httpx

        until, failures = time.monotonic() + _PATIENCE, 0
        while True:
            try:
                response = self._http.request(verb, where, **options)
            except httpx.TransportError as error:
                failures += 1
                repeatable = verb == "GET" or "Idempotency-Key" in options.get("headers", {})
                if not repeatable or failures == 3:
                    raise ServiceError(f"{self.url} does not answer: {error or type(error).__name__}.") from error
                time.sleep(0.2 * failures)
                continue
            if response.status_code == 429 and time.monotonic() < until:
                time.sleep(min(float(response.headers.get("Retry-After", 1)), 10.0))
                continue
            if response.is_success or (partly and response.status_code == 422 and "sightings" in _json(response)):
                return _json(response)
            raise self._refusal(response)

    def _refusal(self, response: httpx.Response) -> NewfoundError:
        told = _json(response)
        detail = told.get("detail") or told.get("error") or response.reason_phrase
        words = detail if isinstance(detail, str) else json.dumps(detail)
        if response.status_code in (404, 409, 422):
            return SettingsError(words)
        hint = " Give the service's token." if response.status_code in (401, 403) else ""
        return ServiceError(f"{self.url} refused ({response.status_code}): {words}{hint}")

    def _category(self, told: dict[str, Any]) -> Category:
        names = ("id", "name", "origin", "count", "merged_into", "ignored", "promoted")
        shown = [f"{self.url}/v1/sightings/{quote(str(number))}/image" for number in told.get("exemplars", ())]
        return Category(**{name: told[name] for name in names}, _show=lambda: shown)


def _sighting(told: dict[str, Any], image: Any) -> Sighting:
    names = ("category", "name", "is_new", "score", "cut", "probability", "new_probability", "number", "repeated")
    pairs = tuple((int(category), float(score)) for category, score in told["runners_up"])
    return Sighting(image=image, runners_up=pairs, **{name: told[name] for name in names})


def _numbers(images: Iterable[Sighting | int]) -> list[int]:
    numbers: list[int] = []
    for image in images:
        number = image.number if isinstance(image, Sighting) else image
        if number is None:
            raise SettingsError("a sighting with an error has no number: it is not in the journal.")
        numbers.append(int(number))
    return numbers


def _bytes(item: Any) -> bytes:
    """An image as the bytes of a file: its own, or PNG for one in memory."""
    if isinstance(item, (str, os.PathLike)):
        with open(item, "rb") as file:
            return file.read()
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    if hasattr(item, "read"):
        content: bytes = item.read()
        return content
    from newfound.images import open_image

    out = io.BytesIO()
    open_image(item).save(out, "PNG")
    return out.getvalue()


def _body(images: list[tuple[str, bytes]], again: bool) -> dict[str, Any]:
    """What holds images in a request: their bytes as they are, or JSON where more is to be said."""
    if not again:
        return {"files": [("images", (name, data, "application/octet-stream")) for name, data in images]}
    told = [{"name": name, "data": base64.b64encode(data).decode()} for name, data in images]
    return {"json": {"images": told, "again": True}}


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        told = response.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {"detail": told}
