"""An HTML document around a body: one file, nothing from outside."""

from __future__ import annotations

from importlib.resources import files

from newfound.report.markup import Content, Markup, element

# Even if a name slipped through as markup, the browser would neither run nor fetch anything.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def document(title: str, *body: Content, style: str = "") -> str:
    """A page with the report's style sheet, and `style` after it."""
    common = files("newfound.report").joinpath("style.css").read_text(encoding="utf-8")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(common + style)),
    )
    return "<!doctype html>\n" + element("html", head, element("body", *body), lang="en") + "\n"
