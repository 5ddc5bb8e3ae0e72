"""Keeps the threads of a matrix product from burning processor time while they wait for each other.

GNU's OpenMP, which PyTorch brings along, lets a thread that waits spin for milliseconds. On an idle machine that costs
nothing; where others want the cores too, threads spin on what the one they wait for would need, and an image takes
twice as long. A spin of some tens of microseconds bridges the gaps within a forward pass just as well.
``GOMP_SPINCOUNT`` or ``OMP_WAIT_POLICY``, set by whoever starts the process, count instead.
"""

from __future__ import annotations

import os

_SPINS = 10_000


def spin_briefly() -> None:
    """Must come before PyTorch is imported: the library looks at the environment once, when it is loaded."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", str(_SPINS))
