"""PyTorch, for what it multiplies faster than NumPy. A dictionary needs neither it nor the seconds it takes to load."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from numpy.typing import NDArray


def module() -> Any:
    """PyTorch, if somebody has loaded it; None while it is being loaded, when some of it crashes."""
    torch = sys.modules.get("torch")
    return None if getattr(getattr(torch, "__spec__", None), "_initializing", False) else torch


def loaded() -> Any:
    """PyTorch, if somebody has loaded it, it multiplies bytes fast here and floats in full precision; else None."""
    torch = module()
    return torch if torch is not None and _multiplies_bytes(torch) and _is_precise(torch) else None


def tensor(array: NDArray[Any]) -> Any:
    """The array's own memory as a tensor; a copy, if nobody may write there, of which PyTorch would warn."""
    return sys.modules["torch"].from_numpy(array if array.flags.writeable else array.copy())


@cache
def _multiplies_bytes(torch: Any) -> bool:
    """Whether the processor has instructions for it (VNNI); without them it is slower than multiplying floats.

    And not exact: pairs of products are then added up in 16 bits. So it is tried, since the library can be told not to
    use what the processor has (ONEDNN_MAX_CPU_ISA).
    """
    supported = getattr(getattr(torch, "cpu", None), "_is_vnni_supported", None)
    if not hasattr(torch, "_int_mm") or supported is None or not supported():
        return False
    largest = torch.full((64, 64), 127, dtype=torch.int8, device="cpu")
    return bool((torch._int_mm(largest, largest) == 64 * 127**2).all())


def _is_precise(torch: Any) -> bool:
    """Whether nobody has traded the precision of float32 products for speed: bounds of their errors would not hold."""
    if torch.is_autocast_enabled("cpu"):
        return False
    precision = getattr(getattr(torch.backends.mkldnn, "matmul", None), "fp32_precision", None)  # of PyTorch 2.9 on
    return precision in ("none", "ieee") if precision else bool(torch.get_float32_matmul_precision() == "highest")
