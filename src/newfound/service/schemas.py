"""The shapes of requests and answers, as the OpenAPI page tells them. Times are seconds since 1970."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

MOST = 2**53  # a number that every JSON reader keeps whole
Number = Annotated[int, Field(ge=0, le=MOST)]
Name = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$"),
]


class Asked(BaseModel):
    """What a request may hold, and nothing else: true is no id, though Python would count it as 1."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Rename(Asked):
    """What to change of a category; what is left out stays."""

    name: Name | None = Field(None, examples=["grey heron"])
    ignored: bool | None = None
    promoted: bool | None = None

    @model_validator(mode="after")
    def says_something(self) -> Rename:
        if self.name is None and self.ignored is None and self.promoted is None:
            raise ValueError("give a name, ignored or promoted")
        return self


class Merge(Asked):
    categories: list[Number] = Field(min_length=2, max_length=1000, examples=[[7, 9]])


class Split(Asked):
    sightings: list[Number] = Field(min_length=1, max_length=5000, examples=[[120, 131]])


class Move(Asked):
    sightings: list[Number] = Field(min_length=1, max_length=5000, examples=[[120]])
    category: Number = Field(examples=[7])


class Undo(Asked):
    """Which edit to take back: one of the `edits` that a change was answered with, else the last one."""

    event: Number | None = Field(None, examples=[123])


class Login(Asked):
    token: str = Field(max_length=1000, examples=["..."])


class Category(BaseModel):
    """A category; `named` if the training or a person gave the name, `doubt` is of its recent sightings."""

    id: int
    name: str
    origin: Literal["known", "discovered"]
    count: int
    merged_into: int | None
    ignored: bool
    promoted: bool
    named: bool
    first_seen: float | None
    last_seen: float | None
    doubt: float | None
    exemplars: list[int]


class Edited(Category):
    """A category after a change; `edits` are the numbers of the events that it made, which undo takes back: none where
    all was so already."""

    edits: list[int]


class Neighbour(BaseModel):
    category: int
    name: str
    score: float | None


class Histogram(BaseModel):
    edges: list[float]
    counts: list[int]


class Event(BaseModel):
    kind: str
    actor: str
    number: int
    time: float


class CategoryDetails(Category):
    neighbours: list[Neighbour]
    histogram: Histogram
    events: list[Event]


class Sighting(BaseModel):
    """An image and what was decided about it; `category` and `name` are those it has now."""

    number: int | None
    image: str | None
    category: int | None
    name: str | None
    is_new: bool
    score: float | None
    cut: float | None
    probability: float | None
    new_probability: float | None
    runners_up: list[tuple[int, float]]
    runners_up_probability: list[float]
    repeated: bool
    time: float | None
    doubtful: bool
    moved: bool
    error: str | None


class Answered(Sighting):
    """A sighting in the answer to a request; `index` is the image's position in it."""

    index: int


class InDoubt(Sighting):
    candidates: list[Neighbour]


class BadImage(BaseModel):
    index: int
    image: str | None
    error: str


class Observed(BaseModel):
    sightings: list[Answered]


class Error(BaseModel):
    error: str


class Unreadable(BaseModel):
    """Some images could not be read; the sightings are those of the others, which have been entered."""

    error: str
    sightings: list[Answered] | None = None
    errors: list[BadImage] | None = None


class Categories(BaseModel):
    items: list[Category]
    total: int
    next: str | None


class Sightings(BaseModel):
    items: list[Sighting]
    total: int
    next: str | None


class DoubtQueue(BaseModel):
    items: list[InDoubt]
    total: int
    next: str | None


class Point(BaseModel):
    kind: Literal["category", "sighting"]
    id: int
    x: float
    y: float
    category: int


class Map(BaseModel):
    points: list[Point]
    method: Literal["pca", "tsne"]


class Timeline(BaseModel):
    sightings: list[int]
    categories: list[int]
    discovered: list[int]


class WhatIf(BaseModel):
    cut: float
    categories: int
    discovered: int
    sightings: int


class Undone(BaseModel):
    """What was taken back: its kind, and its number."""

    undone: str
    event: int


class Status(BaseModel):
    run: str
    method: str
    preset: str
    backbone: str
    classes: int
    began: float
    cut: float
    score: Literal["log ratio", "cosine"]
    sightings: int
    categories: int
    discovered: int
    version: str
    rights: Literal["read", "write"]
    limits: dict[str, Any]


class LoggedIn(BaseModel):
    rights: Literal["read", "write"]


class Alive(BaseModel):
    status: str


def errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route may answer with, beside those that all may."""
    return {code: {"model": Error} for code in (400, 401, 403, 408, 413, 421, 422, 503, *codes)}
