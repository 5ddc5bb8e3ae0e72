"""The state of dictionaries and catalogues as bytes, without pickle, the same in every bit when read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from newfound.errors import JournalError

_PLAIN = "plain"  # the entry that holds what is not an array, as the bytes of a JSON text
_LEAVES = frozenset((str, int, float, bool, type(None)))


def to_bytes(state: Mapping[str, Any]) -> bytes:
    """Arrays and plain values, nested in any way, as bytes."""
    arrays: dict[str, np.ndarray] = {}
    plain = _take_arrays(state, "", arrays)
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")  # as loads decodes
    return save({_PLAIN: np.frombuffer(text, np.uint8), **arrays})


def from_bytes(data: bytes) -> dict[str, Any]:
    """What :func:`to_bytes` was given.

    Raises:
        JournalError: Bytes that it did not write.
    """
    try:
        arrays = load(data)
        state: dict[str, Any] = json.loads(arrays.pop(_PLAIN).tobytes())
        for path, array in arrays.items():
            *folders, name = path.split("/")
            place: Any = state
            for folder in folders:
                place = place[folder]
            place[name] = array
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise JournalError(f"a snapshot in this journal is damaged ({error}).") from error
    return state


def _take_arrays(state: Mapping[str, Any], path: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in state.items():
        if type(value) in _LEAVES:  # first: there are several of them for every category with a name
            plain[name] = value
        elif isinstance(value, np.ndarray):
            arrays[f"{path}{name}"] = np.ascontiguousarray(value)
        elif isinstance(value, dict) and _LEAVES.issuperset(map(type, value.values())):
            plain[name] = value  # as of every category with a name
        elif isinstance(value, Mapping):
            plain[name] = _take_arrays(value, f"{path}{name}/", arrays)
        else:
            plain[name] = value.item() if isinstance(value, np.generic) else value
    return plain
