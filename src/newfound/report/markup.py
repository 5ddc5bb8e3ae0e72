"""HTML from plain functions. Text is escaped on its way in; only what `element` made is taken for markup."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any, TypeAlias

_VOID = frozenset({"br", "col", "img", "link", "meta"})


class Markup(str):
    """Text that is HTML already."""


Content: TypeAlias = "str | Iterable[Content] | None"


def join(*content: Content) -> Markup:
    """All of `content` as one piece of markup: None is left out, lists are flattened, plain text is escaped."""
    return Markup("".join(_flat(part) for part in content))


def element(name: str, /, *content: Content, **attributes: Any) -> Markup:
    """An element. `class_` is written class, `aria_label` aria-label; None and False leave an attribute out."""
    opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
    return Markup(f"<{opening}>" if name in _VOID else f"<{opening}>{join(*content)}</{name}>")


def number(count: int, one: str, many: str | None = None) -> str:
    """A count and its noun: '1 image', '1,347 images'."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _flat(content: Content) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content if isinstance(content, Markup) else html.escape(content)
    return join(*content)


def _attribute(key: str, value: Any) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(str(value))}"'
