"""Keeps the threads of a matrix product from burning processor time while they wait for each other.

GNU's OpenMP, which PyTorch brings along, lets a thread that waits spin for milliseconds. On an idle machine that costs
nothing; where others want the cores too, threads spin on what the one they wait for would need, and an image takes
twice as long. A spin of some tens of microseconds bridges the gaps within a forward pass just as well.
NumPy's OpenBLAS has threads of its own, which spin for more work after every product, in the way of PyTorch's.
``GOMP_SPINCOUNT`` or ``OMP_WAIT_POLICY``, and ``OPENBLAS_THREAD_TIMEOUT``, count instead if whoever starts the process
has set them.
"""

from __future__ import annotations

import os

_SPINS = 10_000
_TIMEOUT = 4  # the binary logarithm of clock cycles: OpenBLAS's least


def spin_briefly() -> None:
    """Must come before NumPy and PyTorch are imported: they look at the environment once, when they are loaded."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(_SPINS))
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", str(_TIMEOUT))
