"""A small data set in the place of a benchmark's, and a cache that no other tests share."""

from __future__ import annotations

import pytest

from newfound.benchmarks.cells import Setup


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEWFOUND_CACHE", str(tmp_path_factory.mktemp("benchmark-cache")))
        yield


@pytest.fixture(scope="module")
def bench(write_folder, tiny_weights, tmp_path_factory) -> Setup:
    """Ten kinds of pictures in the place of CIFAR-10's ten classes."""
    data = write_folder(tmp_path_factory.mktemp("ten"), kinds=10, each=4)
    return Setup("cifar10", str(data), "test_efficientnet", orders=2, weights=tiny_weights(), check=False)
