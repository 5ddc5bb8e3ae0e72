"""The verbs of a local discoverer, for a service that runs elsewhere."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from itertools import islice
from numbers import Integral
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from newfound._arguments import is_whole, whole, whole_or_none
from newfound._uploads import Upload, body, requests
from newfound.datasets import is_finite, iter_source
from newfound.errors import NewfoundError, SettingsError
from newfound.sightings import Category, Sighting

if TYPE_CHECKING:
    import httpx

_AT_ONCE = 32  # images in a request
_PATIENCE = 60.0  # seconds to go on asking a service that is full


class ServiceError(NewfoundError, RuntimeError):
    """A service that cannot be reached, refuses, or does not answer as it should."""


class _TooLarge(ServiceError):
    """A request with more bytes than the service takes."""


class Client:
    """Observes and mends over HTTP as a :class:`~newfound.Discoverer` does at home.

    A request that fails on the way is sent again with the same key, and one that the service has no room for is sent
    again when it says so: nothing is entered twice. An image that cannot be read, or is larger than the service takes,
    gives a sighting with its error, and the stream goes on.

    Args:
        url: of the service, such as http://127.0.0.1:8460.
        token: what it was started with; without it, the environment variable NEWFOUND_TOKEN.
        timeout: seconds to wait for an answer.

    Attributes:
        last_edit: the number of the last edit made here, for `undo`; None if there was nothing to change.

    Raises SettingsError for what is no address or no token, and if httpx is not installed; its methods raise
    ServiceError when the service cannot be reached or refuses, and SettingsError for what it says cannot be done.

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
        if token and not (token.isascii() and token.isprintable()):
            raise SettingsError("a service's token is printable ASCII text; the one that was given is not.")
        headers = {"X-Newfound": "1"} | ({"Authorization": f"Bearer {token}"} if token else {})
        if not isinstance(url, str):
            raise SettingsError(f"{url!r} is no address of a service: give one such as http://127.0.0.1:8460.")
        self.url = url.rstrip("/")
        self.last_edit: int | None = None
        try:
            self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout)
        except httpx.InvalidURL as error:
            raise SettingsError(f"{url!r} is no address of a service: {error}.") from None
        if self._http.base_url.scheme not in ("http", "https") or not self._http.base_url.host:
            raise SettingsError(f"{url!r} is no address of a service: give one such as http://127.0.0.1:8460.")

    def observe(
        self, source: Any, *, block: int = _AT_ONCE, again: bool = False
    ) -> list[Sighting] | Iterator[Sighting]:
        """Send images in order to be decided on; see `Discoverer.observe`."""
        sightings = self._sent("observe", source, whole(block, "block", 1), again)
        return list(sightings) if is_finite(source) else sightings

    def predict(self, source: Any, *, block: int = _AT_ONCE) -> list[Sighting] | Iterator[Sighting]:
        """Ask what images would be told as things stand; nothing changes."""
        sightings = self._sent("predict", source, whole(block, "block", 1))
        return list(sightings) if is_finite(source) else sightings

    def categories(self, *, ignored: bool = True) -> list[Category]:
        """All living categories by id."""
        pages = self._pages("/v1/categories", sort="id", ignored=str(ignored).lower())
        return [self._category(told) for told in pages]

    def category(self, category: int) -> Category:
        """A category by id; a merged one is followed to where it lives now."""
        return self._category(self._ask("GET", f"/v1/categories/{_id(category)}"))

    def sightings(self, category: int | None = None, *, limit: int | None = None) -> list[Sighting]:
        """What the journal holds, in order: all of it, or what belongs to a category now."""
        limit = whole_or_none(limit, "limit")
        where = "/v1/sightings" if category is None else f"/v1/categories/{_id(category)}/sightings"
        order = "oldest" if category is None else "stream"
        return [_sighting(told, told["image"]) for told in islice(self._pages(where, order=order), limit)]

    def rename(self, category: int, name: str) -> Category:
        """Give a category a name of one's own."""
        if not isinstance(name, str):
            raise SettingsError(f"a category's name is text, not {name!r}.")
        return self._edited("PATCH", f"/v1/categories/{_id(category)}", {"name": name})

    def merge(self, categories: Iterable[int]) -> Category:
        """Make one category of several."""
        if isinstance(categories, str | bytes) or not isinstance(categories, Iterable):
            raise SettingsError(f"merge needs the ids of several categories, such as [7, 9], not {categories!r}.")
        return self._edited("POST", "/v1/categories/merge", {"categories": [_id(category) for category in categories]})

    def split(self, category: int, images: Sighting | int | Iterable[Sighting | int]) -> Category:
        """Make a new category of some sightings of one, given as such or by their numbers, not as files."""
        return self._edited("POST", f"/v1/categories/{_id(category)}/split", {"sightings": _numbers(images)})

    def move(self, images: Sighting | int | Iterable[Sighting | int], category: int) -> Category:
        """Say that sightings belong to a category; they are given as for `split`."""
        return self._edited("POST", "/v1/move", {"sightings": _numbers(images), "category": _id(category)})

    def ignore(self, *categories: int, on: bool = True) -> None:
        """Mark categories as junk, or no longer."""
        self._mark(categories, {"ignored": on})

    def promote(self, *categories: int, on: bool = True) -> None:
        """Mark named discoveries as classes to be taught, or no longer."""
        self._mark(categories, {"promoted": on})

    def undo(self, event: int | None = None) -> dict[str, Any]:
        """Take back one edit and say which; without its number (`last_edit`), the last one, whoever made it.

        Raises:
            SettingsError: A later edit has to do with the same and has to be taken back first; there is no such edit,
                or it has been taken back already.
        """
        undone: dict[str, Any] = self._ask("POST", "/v1/undo", json={} if event is None else {"event": _event(event)})
        return undone

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
        for images in requests(iter_source(source), block if is_finite(source) else 1):
            answers = self._answered(verb, [image for image in images if image.error is None], again)
            yield from (next(answers) if image.error is None else _refused(image, image.error) for image in images)

    def _answered(self, verb: str, images: list[Upload], again: bool) -> Iterator[Sighting]:
        """A sighting for each image; of what is too much for one request, half by half."""
        if not images:
            return
        key = {"Idempotency-Key": uuid.uuid4().hex}
        try:
            told = self._ask("POST", f"/v1/{verb}", headers=key, partly=True, **body(images, again))
        except _TooLarge as error:
            if len(images) == 1:
                yield _refused(images[0], f"{images[0].name} has {len(images[0].data):,} bytes: {error}")
                return
            for half in (images[: len(images) // 2], images[len(images) // 2 :]):
                yield from self._answered(verb, half, again)
            return
        answers = {one["index"]: one for one in told["sightings"]}
        errors = {one["index"]: one["error"] for one in told.get("errors", ())}
        for index, image in enumerate(images):
            if index in answers:
                yield _sighting(answers[index], image.item)
            else:
                yield _refused(image, errors.get(index, "was not answered"))

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
                after = response.headers.get("Retry-After", "")
                time.sleep(min(float(after), 10.0) if after.isdecimal() else 1.0)  # a proxy may name a date
                continue
            told = _json(response)
            if response.is_success or (partly and response.status_code == 422 and "sightings" in told):
                if not told:
                    raise ServiceError(f"{self.url} does not answer as newfound's service does: is this its address?")
                return told
            raise self._refusal(response)

    def _refusal(self, response: httpx.Response) -> NewfoundError:
        told = _json(response)
        detail = told.get("detail") or told.get("error") or response.reason_phrase
        words = detail if isinstance(detail, str) else json.dumps(detail)
        if response.status_code == 404 and words == response.reason_phrase:  # of the path, not of what it names
            return ServiceError(f"{self.url} has nothing at {response.url.path}: is this the service's address?")
        if response.status_code in (404, 409, 422):
            return SettingsError(words)
        if response.status_code == 413:
            return _TooLarge(f"{self.url} refused: {words}")
        hint = " Give the service's token." if response.status_code in (401, 403) else ""
        return ServiceError(f"{self.url} refused ({response.status_code}): {words}{hint}")

    def _edited(self, verb: str, where: str, asked: dict[str, Any]) -> Category:
        told = self._ask(verb, where, json=asked)
        self.last_edit = next(reversed(told.get("edits", ())), None)
        return self._category(told)

    def _mark(self, categories: Iterable[int], mark: dict[str, Any]) -> None:
        last = None
        for category in categories:
            self._edited("PATCH", f"/v1/categories/{_id(category)}", mark)
            last = last if self.last_edit is None else self.last_edit
        self.last_edit = last

    def _category(self, told: dict[str, Any]) -> Category:
        names = ("id", "name", "origin", "count", "merged_into", "ignored", "promoted")
        shown = [f"{self.url}/v1/sightings/{quote(str(number))}/image" for number in told.get("exemplars", ())]
        return Category(**{name: told[name] for name in names}, _show=lambda: shown)


def _sighting(told: dict[str, Any], image: Any) -> Sighting:
    names = ("category", "name", "is_new", "score", "cut", "probability", "new_probability", "number", "repeated")
    pairs = tuple((int(category), float(score)) for category, score in told["runners_up"])
    shares = tuple(map(float, told.get("runners_up_probability", ())))  # services of before tell none
    return Sighting(
        image=image, runners_up=pairs, runners_up_probability=shares, **{name: told[name] for name in names}
    )


def _numbers(images: Any) -> list[int]:
    if isinstance(images, str | bytes) or not isinstance(images, Iterable):
        images = [images]
    numbers: list[int] = []
    for image in images:
        number = image.number if isinstance(image, Sighting) else image
        if number is None:
            raise SettingsError("a sighting with an error has no number: it is not in the journal.")
        if not isinstance(number, Integral):
            raise SettingsError(
                f"{number!r} is no sighting: of a service's images give the sightings that `observe` returned, or "
                "their numbers."
            )
        numbers.append(int(number))
    return numbers


def _id(category: int) -> int:
    if not isinstance(category, Integral):
        raise SettingsError(f"there is no category {category!r}: an id is a whole number.")
    return int(category)


def _event(event: int) -> int:
    if not is_whole(event):
        raise SettingsError(f"there is no event {event!r}: an edit has a whole number.")
    return int(event)


def _refused(image: Upload, error: str) -> Sighting:
    return Sighting(image.item, None, None, False, None, None, error=error)


def _json(response: httpx.Response) -> dict[str, Any]:
    try:
        told = response.json()
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {"detail": told}
