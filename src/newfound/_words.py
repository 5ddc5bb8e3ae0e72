"""Numbers in messages for people."""

from __future__ import annotations


def counted(count: int, one: str, many: str = "") -> str:
    """`1 image`, `2 images`; `many` if that is not `one` with an s."""
    return f"{count} {one if count == 1 else many or one + 's'}"
