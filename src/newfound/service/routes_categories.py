"""Routes to look at categories, and to name, merge, split and move."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from newfound.errors import SettingsError
from newfound.service import schemas, views_categories, views_sightings
from newfound.service.core import Service
from newfound.service.problems import Answer

Limit = Annotated[int, Query(ge=1, le=500)]
Cursor = Annotated[str | None, Query(max_length=2000, description="What `next` of the page before was.")]
Id = Annotated[int, Path(ge=0, le=schemas.MOST)]
_THE_LAST = schemas.Undo(event=None)  # what a request without a body asks for


def routes(service: Service) -> APIRouter:
    router = APIRouter(prefix="/v1", tags=["categories"])
    likeness = views_sightings.LikenessOrder(service)
    discoverer = service.discoverer

    @router.get("/categories", response_model=schemas.Categories, responses=schemas.errors())
    def categories(
        sort: Literal["newest", "size", "name", "doubt", "id"] = "newest",
        origin: Literal["known", "discovered"] | None = None,
        q: Annotated[str | None, Query(max_length=200, description="Part of the name, or the id.")] = None,
        ignored: Annotated[bool, Query(description="Also those that are ignored.")] = False,
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Answer:
        """The categories, known and discovered."""
        return Answer(views_categories.listed(service, sort, origin, q, ignored, limit, cursor))

    @router.get("/categories/{id}", response_model=schemas.CategoryDetails, responses=schemas.errors(404))
    def category(id: Id) -> Answer:
        """A category, its nearest ones, the scores of its sightings, and what happened to it last.

        An id that was merged away gives the category it lives on under.
        """
        return Answer(views_categories.detailed(service, id))

    @router.get("/categories/{id}/sightings", response_model=schemas.Sightings, responses=schemas.errors(404))
    def members(
        id: Id,
        order: Literal["stream", "newest", "similar", "outliers"] = "stream",
        limit: Limit = 50,
        cursor: Cursor = None,
    ) -> Answer:
        """The sightings that are in a category now; by likeness, the newest 5,000 of them."""
        if order in ("similar", "outliers"):
            return Answer(likeness.page(id, order == "outliers", limit, cursor))
        return Answer(views_sightings.listed(service, id, None, False, False, order == "newest", limit, cursor))

    @router.patch("/categories/{id}", response_model=schemas.Edited, responses=schemas.errors(404))
    def change(id: Id, asked: schemas.Rename) -> Answer:
        """Rename a category, ignore it, or promote it to a class to be taught; or no longer. All that is asked for, or
        nothing."""
        service.shelves.now().find(id)
        edits: list[int | None] = []
        with service.shelves.still():
            try:
                if asked.name is not None:
                    discoverer.rename(id, asked.name)
                    edits.append(discoverer.last_edit)
                if asked.ignored is not None:
                    discoverer.ignore(id, on=asked.ignored)
                    edits.append(discoverer.last_edit)
                if asked.promoted is not None:
                    discoverer.promote(id, on=asked.promoted)
                    edits.append(discoverer.last_edit)
            except SettingsError:
                for edit in reversed(edits):
                    if edit is not None:  # without a number, undo would take back what somebody did before
                        discoverer.undo(edit)
                raise
        return changed(id, edits)

    @router.post("/categories/merge", response_model=schemas.Edited, responses=schemas.errors())
    def merge(asked: schemas.Merge) -> Answer:
        """Make one category of several: the known one, else the oldest, lives on; all ids stay valid."""
        with service.shelves.still():
            made, edit = discoverer.merge(asked.categories), discoverer.last_edit
        return changed(made.id, [edit])

    @router.post("/categories/{id}/split", response_model=schemas.Edited, responses=schemas.errors(404))
    def split(id: Id, asked: schemas.Split) -> Answer:
        """Make a new category of some sightings of one."""
        service.shelves.now().find(id)
        with service.shelves.still():
            made, edit = discoverer.split(id, asked.sightings), discoverer.last_edit
        return changed(made.id, [edit])

    @router.post("/move", response_model=schemas.Edited, responses=schemas.errors())
    def move(asked: schemas.Move) -> Answer:
        """Say that sightings belong to a category; they stay there."""
        with service.shelves.still():
            made, edit = discoverer.move(asked.sightings, asked.category), discoverer.last_edit
        return changed(made.id, [edit])

    @router.post("/undo", response_model=schemas.Undone, responses=schemas.errors(409))
    def undo(asked: schemas.Undo = _THE_LAST) -> Answer:
        """Take back one edit; without an event, the last one, whoever made it, and again: the one before that.

        409 if a later edit has to do with the same images or categories: the message says which, and that has to be
        taken back first. 422 if there is no such edit, or it has been taken back already.
        """
        with service.shelves.still():
            event = discoverer.undo(asked.event)
        service.follower.wake()
        return Answer({"undone": event.details["was"], "event": event.details["event"]})

    def changed(category: int, edits: list[int | None]) -> Answer:
        service.follower.wake()
        shelf = service.shelves.now()
        (made,) = service.shelves.filled(shelf, [shelf.find(category)])
        return Answer(made | {"edits": [edit for edit in edits if edit is not None]})

    return router
