"""The OpenAPI schema holds: whatever it allows, and much that it does not, is answered as it says."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis")

from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

_CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.mark.slow
def test_every_route_answers_as_the_schema_says(seen):
    described = schemathesis.openapi.from_url(f"{seen.url}/openapi.json").exclude(path="/v1/events")  # it has no end
    asked: set[str] = set()
    for operation in (result.ok() for result in described.get_all_operations()):

        @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
        @given(case=operation.as_strategy())
        def check(case):
            asked.add(case.operation.label)
            case.call_and_validate(checks=_CHECKS, headers={"X-Newfound": "1"})

        check()
    assert len(asked) > 20


def test_every_route_is_described_with_its_errors(seen):
    told = seen.get("/openapi.json")
    for path, methods in told["paths"].items():
        for method, route in methods.items():
            assert route["description"], (method, path)
            if path.startswith("/v1/"):
                assert {"401", "422"} <= set(route["responses"]), (method, path)


def test_the_api_page_shows_every_route_with_an_example_and_loads_nothing(seen):
    page = seen.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in seen.get("/openapi.json")["paths"]:
        assert path.replace("{id}", "7").replace("{number}", "120") in page.text
    assert "curl -F images=@heron.jpg" in page.text
    assert "&quot;name&quot;: &quot;grey heron&quot;" in page.text
    assert "<script" not in page.text
    assert "https://" not in page.text
