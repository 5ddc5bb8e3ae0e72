"""Routes that images come in by, and those that they are shown by."""

from __future__ import annotations

import time
from enum import IntEnum
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request
from starlette.responses import Response

from newfound.service import schemas, uploads
from newfound.service.batching import Job
from newfound.service.core import Service
from newfound.service.images_store import SIZES, shown_name
from newfound.service.intake import Intake, Turn
from newfound.service.problems import Answer
from newfound.service.settings import Settings
from newfound.service.views_sightings import answered, found
from newfound.sightings import Sighting

_Number = Annotated[int, Path(ge=0, le=schemas.MOST)]


class _Size(IntEnum):
    """Pixels of the longer side."""

    SMALL, MEDIUM, LARGE = SIZES


_GONE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160" role="img" aria-label="The image is gone">'
    '<rect width="160" height="160" fill="#8883"/><path d="M50 60h60v44H50zM50 60l60 44M110 60l-60 44" fill="none" '
    'stroke="#888" stroke-width="3"/></svg>'
)
_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/jpeg": {}}, "description": "A JPEG."},
    304: {"description": "The client has it already."},
    404: {"content": {"image/svg+xml": {}, "application/json": {}}, "description": "The image is gone."},
}


def routes(service: Service, settings: Settings) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["images"])
    most = settings.limits.images
    intake = Intake(service)
    answers: dict[int | str, dict[str, Any]] = {
        **schemas.errors(409, 415, 429), 422: {"model": schemas.Unreadable, "description": "Some cannot be read."},
    }  # fmt: skip

    @router.post(
        "/observe", response_model=schemas.Observed, responses=answers,
        openapi_extra=uploads.request_body(most, again=True),
    )  # fmt: skip
    async def observe(request: Request, idempotency_key: Annotated[str | None, Header()] = None) -> Answer:
        """Decide on images in order, and enter them; what is new founds a category.

        The answer comes after the commit. A request that is sent again with the same Idempotency-Key gets the same
        answer and is not entered twice: for a day, or until the service is started again. After that, images that were
        entered come back as `repeated`; those sent with `again` still get the answer that they had. Images that cannot
        be read make it 422, with their index; the others are entered all the same.
        """
        async with intake.turn() as turn:
            given = await uploads.read(request, settings)
            mark = None if idempotency_key is None or not given.again else given.mark(idempotency_key)
            work = partial(_observe, service, intake, given, turn, mark)

            def idle() -> None:  # while the same request that came before is answered
                given.let_go()
                turn.let_go()
                turn.arrived()

            return await service.idempotency.once(idempotency_key, given.digest, work, idle)

    @router.post(
        "/predict", response_model=schemas.Observed, responses=answers,
        openapi_extra=uploads.request_body(most, again=False),
    )  # fmt: skip
    async def predict(request: Request) -> Answer:
        """Decide on images against the categories as they are; nothing changes. What would be new has no category."""
        async with intake.turn() as turn:
            given = await uploads.read(request, settings)
            await intake.fetch(given)
            job = Job([data for data, _ in given.readable()], commit=False)
            sightings = await intake.decided(job, turn.arrived)
        return _told(service, given, sightings, job)

    @router.get("/sightings/{number}/thumbnail", response_class=Response, responses=schemas.errors() | _PICTURE)
    def thumbnail(request: Request, number: _Number, size: _Size = _Size.SMALL) -> Response:
        """A small JPEG of a sighting's image; a drawing with status 404 if the image is gone."""
        row = found(service, number)
        return _picture(request, row.content, f"-{size:d}", lambda: service.store.small(row, size))

    @router.get("/sightings/{number}/image", response_class=Response, responses=schemas.errors() | _PICTURE)
    def image(request: Request, number: _Number) -> Response:
        """A sighting's image, made anew as a JPEG of at most 4096 pixels a side."""
        row = found(service, number)
        return _picture(request, row.content, "", lambda: service.store.whole(row))

    return router


async def _observe(
    service: Service, intake: Intake, given: uploads.Uploads, turn: Turn, mark: str | None
) -> Answer:  # fmt: skip
    start = time.monotonic()
    await intake.fetch(given)
    with service.store.hand() as hand:
        kept = await intake.keep(given, mark, hand)
        given.let_go()
        turn.let_go()
        job = Job([image.path for image in kept if image.entered is None], again=given.again)
        sightings = await intake.entered(kept, job, turn.arrived)
        service.follower.wake()
        told = zip(kept, sightings, strict=True)
        hand.useless |= {image.path for image, sighting in told if image.fresh and sighting.error is not None}
    answer = _told(service, given, sightings, job)
    service.metrics.observe_seconds.observe(time.monotonic() - start)
    bad = sum(sighting.error is not None for sighting in sightings) + len(given.images) - len(kept)
    repeated = sum(sighting.repeated for sighting in sightings)
    for result, count in (("bad", bad), ("repeated", repeated), ("entered", len(given.images) - bad - repeated)):
        service.metrics.images.labels(result).inc(count)
    return answer


def _told(service: Service, given: uploads.Uploads, sightings: list[Sighting], job: Job) -> Answer:
    """The answers in the order of the request; 422 if any image could not be read. It asks nothing of the journal."""
    decided = iter(sightings)
    whole = [
        Sighting(None, None, None, False, None, None, error=image.error) if image.error is not None else next(decided)
        for image in given.images
    ]
    names = [_shown(sighting, image.name) for sighting, image in zip(whole, given.images, strict=True)]
    told = answered(service, whole, names, job.times)
    good = [sighting for sighting in told if sighting["error"] is None]
    bad = [
        {"index": sighting["index"], "image": sighting["image"], "error": _error(source, sighting)}
        for source, sighting in zip(whole, told, strict=True)
        if sighting["error"] is not None
    ]
    if not bad:
        return Answer({"sightings": good})
    message = f"{len(bad)} of {len(told)} images could not be read: {bad[0]['error']}"
    return Answer({"error": message, "sightings": good, "errors": bad}, 422)


def _shown(sighting: Sighting, name: str | None) -> str | None:
    return shown_name(str(sighting.image)) if name is None and hasattr(sighting.image, "name") else name


def _error(source: Sighting, told: dict[str, Any]) -> str:
    """The error without the path that the image has here."""
    return told["error"].replace(str(source.image), told["image"] or "the image") if source.image else told["error"]


def _picture(request: Request, content: bytes | None, kind: str, make: Any) -> Response:
    tag = None if content is None else f'"{content.hex()}{kind}"'
    headers = {} if tag is None else {"ETag": tag, "Cache-Control": "private, max-age=31536000, immutable"}
    if tag is not None and tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    data = make()
    if data is None:
        return Response(_GONE, 404, media_type="image/svg+xml")
    return Response(data, media_type="image/jpeg", headers=headers)
