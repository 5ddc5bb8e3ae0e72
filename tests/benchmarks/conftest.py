"""Benchmarks have a cache of their own: what they leave there is nobody else's."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEWFOUND_CACHE", str(tmp_path_factory.mktemp("benchmark-cache")))
        yield
