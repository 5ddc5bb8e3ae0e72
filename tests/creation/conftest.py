"""The tiny diffusion pipeline as an object."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory):
    """A tiny image-to-image pipeline, the one that `tiny_pipeline_folder` holds. Shared: do not change it."""
    pytest.importorskip("diffusers", reason="newfound[diffusion] is not installed")
    from tiny_diffusion import tiny_pipeline

    return tiny_pipeline(tmp_path_factory.mktemp("vocabulary"))
