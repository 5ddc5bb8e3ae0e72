"""Keeps large tensors from being mapped and faulted in anew at every step.

glibc hands allocations above a moving limit to ``mmap`` and gives them back on ``free``: a forward pass then
spends more time in page faults than in arithmetic. Asking the allocator once to keep such memory is worth a factor
of two and more on a CPU. ``NEWFOUND_MALLOC=0`` leaves the allocator alone.
"""

from __future__ import annotations

import ctypes
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -4, -8  # from glibc's malloc.h
_KEEP_BYTES = 2**31 - 1  # the largest value that mallopt's int takes


def keep_large_allocations() -> bool:
    """Ask glibc to reuse large blocks; returns whether it agreed (never on other C libraries or systems)."""
    if os.environ.get("NEWFOUND_MALLOC") == "0" or not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # musl has no mallopt
        return False
    # One arena for all threads: the heaps of others end at 64 MB and are unmapped as soon as they are empty.
    asked = ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _KEEP_BYTES), (_M_ARENA_MAX, 1))
    return all(bool(mallopt(name, value)) for name, value in asked)
