"""The images of a request: parts of a form, or JSON with base64 or addresses."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import time
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from newfound.errors import ImageError
from newfound.service.images_store import NotKept
from newfound.service.problems import Problem, Stalled
from newfound.service.settings import Settings
from newfound.service.urls import LONGEST, fetch

_NAME = 200  # characters of a client's name that are kept

_IMAGE = {
    "oneOf": [
        {
            "type": "object", "required": ["data"], "additionalProperties": False,
            "properties": {
                "data": {"type": "string", "format": "byte", "description": "The image file, in base64."},
                "name": {"type": "string", "maxLength": _NAME},
            },
        },
        {
            "type": "object", "required": ["url"], "additionalProperties": False,
            "properties": {"url": {"type": "string", "format": "uri", "description": "Below an allowed prefix."}},
        },
    ]
}  # fmt: skip


def request_body(most: int, *, again: bool) -> dict[str, Any]:
    """What OpenAPI should say of the body."""
    extra = {"again": {"type": "boolean", "description": "Enter images anew that were seen before."}} if again else {}
    described = {
        "type": "object", "required": ["images"], "additionalProperties": False,
        "properties": {"images": {"type": "array", "minItems": 1, "maxItems": most, "items": _IMAGE}, **extra},
    }  # fmt: skip
    files = {"type": "array", "minItems": 1, "items": {"type": "string", "format": "binary"}}
    form = {"type": "object", "required": ["images"], "properties": {"images": files}}
    example = {"images": [{"data": "/9j/4AAQSkZJRg...", "name": "heron.jpg"}]}
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {"schema": form},
                "application/json": {"schema": described, "example": example},
            },
        }
    }


@dataclass(frozen=True)
class Upload:
    """An image of a request: its bytes, or the address to fetch them from, or why there are none."""

    data: bytes | None
    name: str | None
    error: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class Uploads:
    """The images of a request, which are fetched, and let go when they are in memory no more."""

    images: list[Upload]
    again: bool

    def digest(self) -> bytes:
        """What tells requests apart, however they were wrapped for the way and whatever is at an address now."""
        whole = hashlib.sha256(repr(self.again).encode())
        for image in self.images:
            rest = repr((image.name, image.error, image.url)).encode()
            whole.update(hashlib.sha256(image.data or b"").digest() + rest)
        return whole.digest()

    def mark(self, key: str) -> str:
        """24 hex digits that only this request with this key has."""
        return hashlib.sha256(key.encode() + b"\0" + self.digest()).hexdigest()[:24]

    @property
    def complete(self) -> bool:
        """Whether nothing has to be fetched."""
        return all(image.url is None for image in self.images)

    def readable(self) -> list[tuple[bytes, str | None]]:
        """The bytes and names of those that there are bytes of."""
        return [(image.data, image.name) for image in self.images if image.data is not None]

    def fetch(self, settings: Settings) -> None:
        """Put in what is at the addresses, or why that could not be had; all share the bytes of one request."""
        left = settings.limits.body - sum(len(data) for data, _ in self.readable())
        until = time.monotonic() + LONGEST
        for index, image in enumerate(self.images):
            if image.url is None:
                continue
            try:
                data = fetch(image.url, settings.urls, left, until - time.monotonic())
                left -= len(data)
                self.images[index] = replace(image, data=data, url=None)
            except ImageError as error:
                self.images[index] = replace(image, error=str(error), url=None)

    def let_go(self) -> None:
        """Forget the bytes."""
        self.images[:] = [replace(image, data=None) for image in self.images]


async def read(request: Request, settings: Settings) -> Uploads:
    """Take the images out of a request; what is at addresses is not fetched yet.

    Raises:
        Problem: The body is not what it should be, or has no image or too many.
        Stalled: The body does not arrive.
        NotKept: The disk is full, or may not be written to.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    most = settings.limits.images
    if kind == "multipart/form-data":
        uploads = Uploads(await _from_form(request, most), again=False)
    elif kind == "application/json":
        uploads = await _from_json(request, most)
    else:
        raise Problem(415, "send multipart/form-data with fields `images`, or application/json.")
    if not uploads.images:
        raise Problem(422, "the request has no images.")
    if len(uploads.images) > most:
        raise Problem(422, f"a request may have {most} images, not {len(uploads.images)}.")
    return uploads


async def _from_form(request: Request, most: int) -> list[Upload]:
    try:
        async with request.form(max_files=most, max_fields=most) as form:
            parts = form.getlist("images")
            files = [part for part in parts if isinstance(part, UploadFile)]
            if len(files) != len(form.multi_items()):
                raise Problem(422, "the form's fields must all be files called `images`: curl -F images=@heron.jpg")
            return [Upload(await file.read(), _name(file.filename)) for file in files]
    except Stalled:
        raise
    except HTTPException as error:  # which Starlette makes of what its parser raises
        raise Problem(422, f"the form cannot be read: {error.detail}") from error
    except OSError as error:  # the parser puts large files aside, where the system has its temporary ones
        raise NotKept(f"cannot put an upload aside: {error}") from error


async def _from_json(request: Request, most: int) -> Uploads:
    try:
        # Not `request.body()`, which would be kept as long as the request: it is let go before that is answered.
        body = json.loads(b"".join([piece async for piece in request.stream()]))
    except (ValueError, RecursionError):
        raise Problem(422, "the body is not JSON.") from None
    if not isinstance(body, dict) or body.keys() - {"images", "again"}:
        raise Problem(422, 'the body must be {"images": [...]}, and may have "again".')
    images, again = body.get("images"), body.get("again", False)
    if not isinstance(again, bool):
        raise Problem(422, "again: it is true or false.")
    if not isinstance(images, list):
        raise Problem(422, "images: a list is needed.")
    if len(images) > most:
        raise Problem(422, f"a request may have {most} images, not {len(images)}.")
    checked = [_checked(index, image) for index, image in enumerate(images)]
    return Uploads([await run_in_threadpool(_load, image) for image in checked], again)


def _checked(index: int, image: Any) -> dict[str, str]:
    shape = isinstance(image, dict) and (set(image) == {"url"} or ("data" in image and set(image) <= {"data", "name"}))
    if not shape or not all(isinstance(value, str) for value in image.values()):
        raise Problem(422, f'images.{index}: give {{"data": base64, "name": ...}} or {{"url": ...}}.')
    return image


def _load(image: dict[str, str]) -> Upload:
    if "url" in image:
        name = _name(image["url"].partition("?")[0].rstrip("/").rpartition("/")[2])
        return Upload(None, name, url=image["url"])
    name = _name(image.get("name"))
    try:
        return Upload(base64.b64decode(image["data"], validate=True), name)
    except (ValueError, binascii.Error):
        return Upload(None, name, "the data are not base64")


def _name(name: str | None) -> str | None:
    """A client's name for an image, as text that can be shown."""
    if not name:
        return None
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(c for c in last.encode("utf-8", "replace").decode() if c.isprintable())[:_NAME] or None
