"""What every dictionary promises, whatever it reads a category off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, overload

from numpy.typing import NDArray

from newfound.discovery._exact import Ints
from newfound.discovery.decisions import Decisions


class Dictionary(Protocol):
    """Known and discovered categories that name a stream of readings and grow with it.

    Known categories have the ids 0 .. ``known`` - 1, discovered ones the numbers after them in the order of their
    founding; no id is ever used again. A score says how well a sample fits a category, as a similarity or a log ratio;
    one that reaches the threshold for none is new, or doubtful where a dictionary waits for a second like it. Any
    batching of a stream gives the answers of one sample at a time.
    """

    threshold: float

    def observe(self, features: Any, runners_up: int = 0) -> Decisions:
        """Decides on each reading in turn, and founds a category where none is near enough."""

    def predict(self, features: Any, runners_up: int = 0) -> Decisions:
        """What each reading alone would be told as things stand; nothing changes."""

    def learn_one(self, x: Any, y: int | None = None) -> int:
        """Takes in one sample, decided on or as a person says, and returns its category's id."""

    def predict_one(self, x: Any) -> int:
        """The id that one sample would be answered with, -1 if it would found a category; nothing changes."""

    def __len__(self) -> int:
        """The number of living categories."""

    @property
    def known(self) -> int:
        """The number of known categories."""

    @property
    def seen(self) -> int:
        """How many samples have been observed."""

    @property
    def dimension(self) -> int:
        """The length of a reading."""

    @property
    def ids(self) -> Ints:
        """The ids of the living categories, ascending."""

    @property
    def counts(self) -> Ints:
        """How many observed samples each living category has."""

    @property
    def aliases(self) -> dict[int, int]:
        """For every id that was merged away or dissolved, the one it lives on under."""

    @overload
    def resolve(self, ids: int) -> int: ...
    @overload
    def resolve(self, ids: Sequence[int] | NDArray[Any]) -> Ints: ...

    def merge(self, ids: Iterable[int]) -> int:
        """Makes one category of several and returns the id it lives on under."""

    def reassign(
        self, numbers: Any, features: Any, sources: Any, target: int | None = None, pinned: Any = None
    ) -> int:
        """Puts sightings where a person says that they belong, None: into a new category; returns its id."""

    def admit(self, features: Any, categories: Any, pinned: Any = None) -> None:
        """Takes in samples whose answers are given, in order; the next id founds a category."""

    def state(self) -> dict[str, Any]:
        """All that the dictionary is, as arrays (copies) and plain values."""

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Dictionary:
        """The dictionary whose state this is: it continues the stream as if never stopped."""
