"""One batch, learnt by several processes: each encodes its share of the rows, all see the whole.

Every process holds the same batch and the same weights, and computes the same losses on the features of all rows: the
contrastive loss has all its pairs, prototypes and threshold are the same everywhere, and a method needs no second form
for several processes. What is divided is the costly part, the encoding.

Gradients follow from that. Distributed data parallelism takes the mean of the processes' gradients. Weights behind the
gathered features (a head) have the whole gradient in every process, and its mean is itself. Weights before them (the
tail) have in process r the part g_r of the process's own rows, while the whole is g_1 + ... + g_W: so `AllRows` hands
back W g_r, whose mean is the sum. `OwnRows` takes the factor off again on the way to the inputs, which are the same in
all processes and shall have the gradient they would have in one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from newfound.errors import SettingsError


@dataclass(frozen=True)
class Ranks:
    """Which of how many processes this is."""

    rank: int = 0
    world: int = 1

    @classmethod
    def of(cls, fabric) -> Ranks:
        return cls(fabric.global_rank, fabric.world_size)

    def share(self, count: int) -> np.ndarray:
        """The positions among `count` rows that are this process's.

        All shares are of one size, as gathering asks for: where rows run out, the last one is repeated.
        """
        size = math.ceil(count / self.world)
        return np.minimum(np.arange(self.rank * size, (self.rank + 1) * size), count - 1)

    def gather(self, rows: Tensor, count: int) -> Tensor:
        """All `count` rows from the shares of all processes, without gradients."""
        if self.world == 1:
            return rows
        parts = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(self.world)]
        torch.distributed.all_gather(parts, rows.detach().contiguous())
        return torch.cat(parts)[:count]


class OwnRows(torch.autograd.Function):
    """This process's share of rows that all have; the gradients of the others' rows come from them."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks, ctx.count = ranks, len(rows)
        return rows[torch.from_numpy(ranks.share(len(rows))).to(rows.device)]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.ranks.gather(gradient, ctx.count) / ctx.ranks.world, None


class AllRows(torch.autograd.Function):
    """All `count` rows from every process's share; what is made of them must be the same in all processes."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, ranks: Ranks, count: int) -> Tensor:
        ctx.ranks, ctx.size = ranks, len(rows)
        return ranks.gather(rows, count)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        start = ctx.ranks.rank * ctx.size
        own = gradient[start : start + ctx.size]
        repeated = gradient.new_zeros(ctx.size - len(own), *gradient.shape[1:])  # rows that only fill up the share
        return ctx.ranks.world * torch.cat([own, repeated]), None, None


def exempt(learner: Any) -> None:
    """Keep out of the exchange what a `newfound.training.Learner` never changes.

    That is the backbone's running statistics, and weights that no feature depends on: some timm models have such
    behind their last block, and a process would wait for their gradients.
    """
    backbone, prefix = learner.backbone, "backbone.model."
    names, weights = zip(*((n, p) for n, p in backbone.model.named_parameters() if p.requires_grad), strict=True)
    pixels = torch.zeros(1, 3, backbone.spec.size, backbone.spec.size, device=weights[0].device)
    gradients = torch.autograd.grad(backbone(pixels).sum(), weights, allow_unused=True)
    unused = [name for name, gradient in zip(names, gradients, strict=True) if gradient is None]
    fixed = [name for name, _ in backbone.model.named_buffers()]
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
        learner, [prefix + name for name in (*unused, *fixed)]
    )


def divide(items: list, fabric, fill: Callable[[list], object]) -> None:
    """Let each process fill its part of a cache; where machines have caches of their own, the rest is still to do."""
    if fabric.world_size > 1:
        fill(items[fabric.global_rank :: fabric.world_size])
        fabric.barrier()


def check_agreement(values: Mapping[str, Any], fabric) -> None:
    """Raise SettingsError, with the names of what differs, if the first process has other values than this one."""
    first = fabric.broadcast(values)
    if differing := [name for name in values if values[name] != first.get(name)]:
        raise SettingsError(
            f"process {fabric.global_rank} differs from the first one in {', '.join(differing)}: give all the same "
            f"command, and every machine the same data, weights and version."
        )
