"""The API as a page: made from the OpenAPI schema, without scripts, so that nothing is loaded from elsewhere."""

from __future__ import annotations

import json
from typing import Any

from newfound.report.markup import Markup, element

_METHODS = ("get", "post", "patch")


def api_page(schema: dict[str, Any], base: str) -> str:
    """All routes with what they take and answer, and how to call them."""
    routes = [
        _route(schema, base, path, method, route)
        for path, methods in schema["paths"].items()
        for method, route in methods.items()
        if method in _METHODS
    ]
    info = schema["info"]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{info['title']}: the API"),
        element("link", rel="stylesheet", href="/assets/style.css"),
    )
    link = element("a", "openapi.json", href="/openapi.json")
    about = element("p", info["description"], " The schema for programs: ", link)
    body = element("body", element("main", element("h1", f"{info['title']} {info['version']}: the API"), about, routes))
    return "<!doctype html>\n" + element("html", head, body, lang="en")


def _route(schema: dict[str, Any], base: str, path: str, method: str, route: dict[str, Any]) -> Markup:
    answers = route["responses"].items()
    parameters = [
        element("li", element("code", parameter["name"]), f" ({parameter['in']}) {_kind(parameter['schema'])} ",
                parameter.get("description", ""))
        for parameter in route.get("parameters", ())
    ]  # fmt: skip
    return element(
        "section",
        element("h2", element("code", f"{method.upper()} {path}")),
        [element("p", text) for text in route.get("description", "").split("\n\n")],
        element("ul", parameters) if parameters else None,
        element("pre", element("code", _call(schema, base, path, method, route))),
        element("p", "Answers: ", ", ".join(f"{code} {_answer(told)}".strip() for code, told in answers)),
    )


def _kind(schema: dict[str, Any]) -> str:
    choices = [_kind(choice) for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if choices:
        return " or ".join(choices)
    values = schema.get("enum")
    return " | ".join(map(str, values)) if values else str(schema.get("type", ""))


def _answer(told: dict[str, Any]) -> str:
    reference = told.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
    return reference.rpartition("/")[2]


def _call(schema: dict[str, Any], base: str, path: str, method: str, route: dict[str, Any]) -> str:
    """A command that can be pasted into a shell."""
    address = base.rstrip("/") + path.replace("{id}", "7").replace("{number}", "120")
    content = route.get("requestBody", {}).get("content", {})
    if "multipart/form-data" in content:
        return f"curl -F images=@heron.jpg -F images=@egret.jpg {address}"
    if "application/json" in content:
        example = json.dumps(_example(schema, content["application/json"]["schema"]))
        return f"curl -X {method.upper()} --json '{example}' {address}"
    return f"curl {address}" if method == "get" else f"curl -X {method.upper()} -H 'X-Newfound: 1' {address}"


def _example(schema: dict[str, Any], of: dict[str, Any]) -> dict[str, Any]:
    described = schema["components"]["schemas"][of["$ref"].rpartition("/")[2]]
    return {name: value["examples"][0] for name, value in described["properties"].items() if value.get("examples")}
