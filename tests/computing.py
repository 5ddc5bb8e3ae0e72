"""The two ways that a dictionary computes: in NumPy, and compiled."""

from __future__ import annotations

from contextlib import contextmanager

from newfound.discovery import _compiled


@contextmanager
def computing(how: str):
    """Whatever is computed inside is computed in "numpy", or "compiled"."""
    loader, before = _compiled._loader, (_compiled._loader.kernels, _compiled._loader.why_not)
    if how == "numpy":
        loader.kernels, loader.why_not = None, "a test wants NumPy"
    else:
        loader.kernels, loader.why_not = None, None
        why_not = _compiled.load()
        assert why_not is None, why_not
    try:
        yield
    finally:
        loader.kernels, loader.why_not = before
