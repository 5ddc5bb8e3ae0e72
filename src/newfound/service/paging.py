"""Lists in pages: a cursor says what was shown last, so that nothing is shown twice when the list grows."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from newfound.service.problems import Problem


def encode(value: Any) -> str:
    """A cursor that holds a value."""
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


def decode(cursor: str | None, like: tuple[type, ...] | type) -> Any:
    """The value in a cursor, None for none. Raises Problem 422 for what this service did not give out."""
    if cursor is None:
        return None
    kinds = like if isinstance(like, tuple) else (like,)
    try:
        value = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        raise Problem(422, "cursor: give back what `next` of the page before was.") from None
    parts = value if isinstance(like, tuple) else [value]
    fits = isinstance(parts, list) and len(parts) == len(kinds)
    if not fits or not all(_is(part, kind) for part, kind in zip(parts, kinds, strict=True)):
        raise Problem(422, "cursor: it is of another list than this one.")
    return value


def _is(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(value, int) and abs(value) > 2**53:
        return False
    return isinstance(value, kind) and not isinstance(value, bool)


def page(items: list[Any], total: int, following: str | None) -> dict[str, Any]:
    return {"items": items, "total": total, "next": following}
