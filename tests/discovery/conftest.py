"""Dictionaries compute in two ways, and promise the same of both."""

from __future__ import annotations

import pytest
from computing import computing


@pytest.fixture(scope="module", params=["numpy", "compiled"])
def both_ways(request):
    """Every test of the module is run twice."""
    with computing(request.param):
        yield
