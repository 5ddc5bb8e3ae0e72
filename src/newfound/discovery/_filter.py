"""The fast float32 product that proposes, and how far it can be from the value that decides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from newfound.discovery import _torch
from newfound.discovery._exact import UNIT_TOLERANCE, Float32s, Ints

_FEW = 64  # rows
_BELOW_ALL = -2.0  # below every product of unit rows, above the -inf of entries that do not count


def products(a: Float32s, b: Float32s, out: Float32s | None = None) -> Float32s:
    """The inner products of all rows of ``a`` with all rows of ``b``, in whatever order suits the library.

    Where PyTorch is at work, it is asked: the threads of two libraries are in each other's way.
    """
    if out is None and len(a) >= _FEW and _torch.loaded() is not None:
        return np.asarray((_torch.tensor(a) @ _torch.tensor(b).T).numpy())
    return np.matmul(a, b.T, out=out)


def paired(a: Float32s, b: Float32s, out: Float32s | None = None) -> Float32s:
    """The inner products of the rows of ``a`` with those of ``b``, row by row."""
    return np.einsum("ij,ij->i", a, b, out=out)


def bound(dimension: int) -> float:
    """How far a product of two unit rows can be from their canonical similarity.

    Whatever the order of its additions, with or without fused multiply-add, a float32 inner product is within
    gamma_D * sum|a_i b_i| of the truth, where gamma_D = D u / (1 - D u) and u = 2^-24 (Higham, Accuracy and
    Stability of Numerical Algorithms, Sec. 3.1), and sum|a_i b_i| <= |a| |b| <= (1 + tolerance)^2. Two more
    units pay, many times over, for the rounding of the canonical value and for products that underflow.
    """
    errors = (dimension + 2) * 2.0**-24
    return errors / (1.0 - errors) * (1.0 + UNIT_TOLERANCE) ** 2


def reaching(values: NDArray[Any], limits: NDArray[Any]) -> tuple[Ints, Ints]:
    """The rows and columns of the ``values`` ``[n, m]`` that reach their row's limit, row by row."""
    # Looked for in one dimension, which takes a small part of the time that two take.
    rows, columns = np.divmod(np.flatnonzero(values >= limits[:, None]), max(1, values.shape[1]))
    return rows, columns


def floor_for(value: float) -> float:
    """``value`` as a floor for products, which are not clipped to [-1, 1] as similarities are.

    Clipping lifts everything below -1 to -1, so a floor from there down must let everything pass.
    """
    return value if value > -1.0 else _BELOW_ALL
