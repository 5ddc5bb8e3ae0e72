"""Routes for the stream: sightings, doubt, the map, the chart, what-if, and what happens now."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from starlette.responses import StreamingResponse

from newfound.service import live, schemas, views_sightings, views_stream
from newfound.service.core import Service
from newfound.service.problems import Answer, Problem
from newfound.service.routes_categories import Cursor, Limit
from newfound.service.views_map import Maps

_CUTS = 20  # in one question
_LIVE: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {}}, "description": "Without end."}}


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["stream"])
    maps, what_ifs = Maps(service), views_stream.WhatIfs(service)

    @router.get("/sightings", response_model=schemas.Sightings, responses=schemas.errors(404))
    def sightings(
        category: Annotated[int | None, Query(ge=0, le=schemas.MOST)] = None,
        since: Annotated[int | None, Query(ge=0, le=schemas.MOST, description="From this number on.")] = None,
        doubtful: Annotated[bool, Query(description="Only those below the cut.")] = False,
        new: Annotated[bool, Query(description="Only those that founded a category.")] = False,
        order: Literal["newest", "oldest"] = "newest",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Answer:
        """What was seen, by number."""
        newest = order == "newest"
        return Answer(views_sightings.listed(service, category, since, doubtful, new, newest, limit, cursor))

    @router.get("/doubt", response_model=schemas.DoubtQueue, responses=schemas.errors())
    def doubt(limit: Limit = 50, cursor: Cursor = None) -> Answer:
        """Sightings worth a second look that no person has decided on, newest first, with their candidates."""
        return Answer(views_stream.in_doubt(service, limit, cursor))

    @router.get(
        "/map", response_model=schemas.Map, responses=schemas.errors(404) | {202: {"model": schemas.Alive}},
    )  # fmt: skip
    def map(
        limit: Annotated[int, Query(ge=2, le=5000)] = 2000, method: Literal["pca", "tsne"] = "pca"
    ) -> Answer:  # fmt: skip
        """Categories and the newest sightings in two dimensions; 202 while t-SNE is at work for the first time."""
        made = maps.pca(limit) if method == "pca" else maps.tsne(limit)
        return Answer({"status": "the map is being made; ask again"}, 202) if made is None else Answer(made)

    @router.get("/timeline", response_model=schemas.Timeline, responses=schemas.errors())
    def timeline() -> Answer:
        """How many categories had been seen after so many sightings, at most 400 points."""
        return Answer(views_stream.timeline(service))

    @router.get("/what-if", response_model=list[schemas.WhatIf], responses=schemas.errors())
    def what_if(
        cut: Annotated[float | None, Query(allow_inf_nan=False)] = None,
        cuts: Annotated[str | None, Query(max_length=1000, description="Several, as a,b,c.")] = None,
    ) -> Answer:
        """How many categories the recorded stream would have had with other cuts: its first 20,000 sightings."""
        return Answer([what_ifs.ask(one) for one in _cuts(cut, cuts)])

    @router.get("/events", response_class=StreamingResponse, responses=_LIVE | schemas.errors())
    async def events(last_event_id: Annotated[str | None, Header()] = None) -> StreamingResponse:
        """Server-sent events: sighting, category, gone, edit, position. Last-Event-ID goes on where one broke off."""
        messages = live.stream(service, live.parse_position(last_event_id))
        return StreamingResponse(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return router


def _cuts(cut: float | None, cuts: str | None) -> list[float]:
    try:
        values = [float(text) for text in cuts.split(",")] if cuts else []
    except ValueError:
        raise Problem(422, "cuts: give numbers with commas between them.") from None
    values += [] if cut is None else [cut]
    if not values or len(values) > _CUTS or not all(map(math.isfinite, values)):
        raise Problem(422, f"give a cut, or up to {_CUTS} finite cuts.")
    return values
