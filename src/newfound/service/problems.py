"""What goes wrong, as answers: a status, and one sentence for people."""

from __future__ import annotations

import json
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from newfound.errors import DataError, ImageError, JournalError, SettingsError
from newfound.journal.undoing import InTheWay
from newfound.service.images_store import NotKept

log = logging.getLogger("newfound.service")


class Answer(Response):
    """JSON in ASCII: a name that is no Unicode text, as file names may be, cannot break an answer."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Problem(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}


class Stalled(HTTPException):
    """The body of a request does not arrive; an HTTPException, which FastAPI lets through where it reads it itself."""

    def __init__(self) -> None:
        told = "the body arrives too slowly, or not at all; nothing was entered: send it again, with fewer images."
        super().__init__(408, told, {"Connection": "close"})


def problem(status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer({"error": message}, status, headers)


def unexpected(error: Exception) -> Answer:
    """What is said of an error that nobody thought of."""
    return problem(500, f"unexpected {type(error).__name__}; the log of the service says more.")


def answer_problems(app: FastAPI, place: str) -> None:
    """Let every error that is known of be answered in the same shape; the others get as far as the guard.

    Args:
        place: what errors call the journal: its path, which is nothing to a client.
    """

    def without_path(error: Exception) -> str:
        return str(error).replace(place, "the journal")

    @app.exception_handler(Problem)
    async def told(_: Request, error: Problem) -> Answer:
        return problem(error.status, str(error), error.headers)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> Answer:
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Answer:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return problem(422, "the body is not JSON.")
        where = ".".join(str(step) for step in first["loc"] if step not in ("body", "query", "path"))
        return problem(422, f"{where or 'the request'}: {first['msg'].removeprefix('Value error, ')}")

    @app.exception_handler(SettingsError)
    async def refused(_: Request, error: SettingsError) -> Answer:
        return problem(422, without_path(error))

    @app.exception_handler(InTheWay)
    async def in_the_way(_: Request, error: InTheWay) -> Answer:
        return problem(409, without_path(error))

    @app.exception_handler(ImageError)
    @app.exception_handler(DataError)
    async def unusable(_: Request, error: Exception) -> Answer:
        return problem(422, without_path(error))

    @app.exception_handler(NotKept)
    async def not_kept(_: Request, error: NotKept) -> Answer:
        log.error("%s", error)
        message = "the service cannot write to its disk, so that nothing was entered; its log says more."
        return problem(503, message, {"Retry-After": "5"})

    @app.exception_handler(JournalError)
    async def journal(_: Request, error: JournalError) -> Answer:
        log.error("%s", error)
        return problem(503, without_path(error), {"Retry-After": "5"})
