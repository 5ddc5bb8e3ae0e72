"""Categories and recent sightings in two dimensions: by PCA at once, by t-SNE when it is ready."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.journal.book import decided_on
from newfound.journal.rows import Position
from newfound.service.core import Service
from newfound.service.problems import Problem

log = logging.getLogger("newfound.service")

_DIMENSIONS = 50  # that t-SNE is given
_FEWEST = 8  # points that t-SNE makes sense of


@dataclass(frozen=True)
class _Cloud:
    """What a map shows: the points' names, and where they are in many dimensions."""

    names: list[dict[str, Any]]
    vectors: NDArray[np.float32]


class Maps:
    """Maps of the journal as it stands; a t-SNE that is being made anew is shown as it was until then."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._turn = threading.Lock()
        self._plain: tuple[tuple[Position, int], dict[str, Any]] | None = None
        self._fine: tuple[tuple[Position, int], dict[str, Any]] | None = None
        self._at_work = False

    def pca(self, limit: int) -> dict[str, Any]:
        """The plane in which the points differ most."""
        key = (self._service.journal.position(), limit)
        plain = self._plain
        if plain is None or plain[0] != key:
            cloud = self._cloud(limit)
            self._plain = plain = (key, _told(cloud, principal(cloud.vectors, 2), "pca"))
        return plain[1]

    def tsne(self, limit: int) -> dict[str, Any] | None:
        """A map on which neighbours are neighbours; None while the first one is being made."""
        key = (self._service.journal.position(), limit)
        with self._turn:
            ready = self._fine
            if (ready is None or ready[0] != key) and not self._at_work:
                self._at_work = True
                threading.Thread(target=self._make, args=(key, limit), name="newfound-map", daemon=True).start()
        return None if ready is None or ready[0][1] != limit else ready[1]

    def _make(self, key: tuple[Position, int], limit: int) -> None:
        from sklearn.manifold import TSNE

        try:
            cloud = self._cloud(limit)
            if len(cloud.vectors) < _FEWEST:
                made = _told(cloud, principal(cloud.vectors, 2), "pca")
            else:
                few = principal(cloud.vectors, min(_DIMENSIONS, *cloud.vectors.shape))
                model = TSNE(perplexity=min(30.0, (len(few) - 1) / 3), init="pca", random_state=0)
                made = _told(cloud, model.fit_transform(few), "tsne")
            self._fine = (key, made)
        except Exception:  # a map that fails must not be waited for in vain: the next request tries again
            log.exception("the map could not be made")
        finally:
            self._at_work = False

    def _cloud(self, limit: int) -> _Cloud:
        """The largest categories, up to half of the points, and the newest sightings."""
        service, shelf, space = self._service, self._service.shelves.now(), self._service.space()
        largest = sorted(shelf.categories.values(), key=lambda c: (-c["count"], c["id"]))
        chosen = {c["id"] for c in largest if not c["ignored"]}
        rows: dict[int, list[int]] = {}
        for row, part in enumerate(space.parts.tolist()):
            if part < len(shelf.owner) and shelf.owner[part] in chosen:
                rows.setdefault(shelf.owner[part], []).append(row)
        shown = [c["id"] for c in largest if c["id"] in rows][: max(1, limit // 2)]
        vectors = [space.vectors[rows[category]].mean(axis=0) for category in shown]
        names = [{"kind": "category", "id": category, "category": category} for category in shown]
        end = shelf.position.sightings
        start = max(0, end - (limit - len(shown)))
        recent = [r for some in service.journal.stream(start, end) for r in some if r.feature is not None]
        if recent:
            places = service.journal.place([row.number for row in recent])
            readings = decided_on(recent, service.discoverer.dictionary.dimension)
            vectors += list(space.place(readings))
            names += [
                {"kind": "sighting", "id": r.number, "category": _owner(shelf.owner, places[r.number], r.category)}
                for r in recent
            ]
        if not names:
            raise Problem(404, "there is nothing to show on a map yet.")
        return _Cloud(names, np.asarray(vectors, np.float32))


def _owner(owners: list[int], part: int, otherwise: int) -> int:
    return owners[part] if 0 <= part < len(owners) else otherwise


def principal(vectors: NDArray[np.float32], dimensions: int) -> NDArray[np.float64]:
    """The coordinates of points along their principal axes; zeros where there are fewer axes than that."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    found = (left * sizes)[:, :dimensions]
    return np.pad(found, ((0, 0), (0, dimensions - found.shape[1])))


def _told(cloud: _Cloud, where: NDArray[Any], method: str) -> dict[str, Any]:
    points = [name | {"x": float(x), "y": float(y)} for name, (x, y) in zip(cloud.names, where.tolist(), strict=True)]
    return {"points": points, "method": method}
