"""newfound recognises the classes it was taught and discovers, one image at a time, the ones it was not."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Public names and where they live. They are loaded on first use: `import newfound` costs next to nothing.
_PUBLIC = {
    "fit": "newfound.fitting",
    "load": "newfound.loading",
    "Run": "newfound.run",
    "Discoverer": "newfound.discoverer",
    "Sighting": "newfound.sightings",
    "Client": "newfound.client",
    "PrototypeDictionary": "newfound.discovery",
    "score": "newfound.evaluation",
    "methods": "newfound.method",
    "creators": "newfound.creation",
    "backbones": "newfound.backbone",
    "NewfoundError": "newfound.errors",
}
__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'newfound' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
