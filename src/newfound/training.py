"""The one training loop: every method learns here, on Lightning Fabric, from pixels or from cached trunk outputs.

Every random choice is drawn from a generator made from (seed, epoch, step), never from a running state: the same seed
gives the same weights, threshold and log, and a run that was stopped goes on as if it had not been. Several processes
draw the same, and learn each batch together (`newfound.distributed`): they end where one alone would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from newfound._view_pairs import view_source
from newfound.backbone import Backbone
from newfound.checkpoints import Checkpoint
from newfound.creation import PixelScale
from newfound.distributed import AllRows, OwnRows, Ranks, exempt
from newfound.errors import NewfoundError
from newfound.features import Encoder, Progress, unit
from newfound.method import Batch, Method, Settings

EpochEnd = Callable[[dict[str, float]], None]


@dataclass
class Trained:
    """What training leaves: the method with its head, and how it went. The tail has learnt in place."""

    method: Method
    log: list[dict[str, float]] = field(default_factory=list)  # a row an epoch
    threshold_path: list[tuple[int, float]] = field(default_factory=list)  # (step, tau) whenever tau moved
    created: int = 0  # images that the method made before training and learnt from too


class Learner(nn.Module):
    """Backbone and method as one module, so that a distributed strategy sees a single forward pass."""

    def __init__(self, backbone: Backbone, method: Method, *, inputs: str, ranks: Ranks | None = None) -> None:
        super().__init__()
        self.backbone, self.method, self.ranks = backbone, method, ranks or Ranks()
        # Creation in pixel space needs inputs that are still pixels; otherwise tokens are made first, once.
        space = getattr(method.settings, "space", "tokens") if method.creates else "tokens"
        self.keep_pixels = inputs == "pixels" and space == "pixels"
        self.needs_trunk = inputs == "pixels" and not self.keep_pixels

    def forward(self, first: Tensor, second: Tensor, targets: Tensor, epoch: int, rng: np.random.Generator) -> dict:
        """The method's losses on a batch: two views of this process's share of it, and the classes of the whole."""
        if self.needs_trunk:
            first, second = self.backbone.trunk(first), self.backbone.trunk(second)
        # Samples are created between any two of the batch, so each process needs all inputs, not only its own.
        first, second = (self.ranks.gather(view, len(targets)) for view in (first, second))
        spec = self.backbone.spec
        scale = PixelScale(spec.mean, spec.std) if self.keep_pixels else None
        encode = _Encode(self.backbone if self.keep_pixels else _Tail(self.backbone), self.ranks)
        return self.method.loss(Batch(first, second, targets, encode, epoch, rng, scale))


class _Tail(nn.Module):
    """A backbone's tail as a module, which `functional_call` asks for."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, tokens: Tensor) -> Tensor:
        return self.backbone.tail(tokens)


class _Encode:
    """Inputs to unit features, each process its share of them; see `newfound.method.Encode`."""

    def __init__(self, module: nn.Module, ranks: Ranks) -> None:
        self.module, self.ranks = module, ranks

    def __call__(self, inputs: Tensor) -> Tensor:
        if self.ranks.world == 1:
            return unit(self.module(inputs))
        return AllRows.apply(unit(self.module(OwnRows.apply(inputs, self.ranks))), self.ranks, len(inputs))

    def parameters(self) -> dict[str, Tensor]:
        return {name: p for name, p in self.module.named_parameters() if p.requires_grad}

    def at(self, parameters: dict[str, Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda inputs: unit(torch.func.functional_call(self.module, parameters, (inputs,)))


def learn(
    encoder: Encoder,
    items: Sequence,
    targets: np.ndarray,
    method: Method,
    *,
    seed: int,
    fabric,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    on_epoch: EpochEnd | None = None,
) -> Trained:
    """Train the encoder's tail and the method's head.

    Args:
        items, targets: the labelled images and their class indices.
        fabric: a launched Lightning Fabric; it owns device, precision and strategy. With several processes each has
            its share of every batch, whose size is that of the settings all the same.
        checkpoint: if given, training goes on from its last epoch and saves after each; the first process writes.
        progress: called with the number of samples done.
        on_epoch: called with the log's row after each epoch.
    """
    settings = method.settings
    trained = Trained(method)
    if settings.epochs == 0:
        return trained
    ranks, source = Ranks.of(fabric), view_source(encoder, items, settings, seed)
    learner = Learner(encoder.backbone, method, inputs=source.space, ranks=ranks)
    if ranks.world > 1:
        exempt(learner)
    model, optimizer = fabric.setup(learner, make_optimizer(learner, settings))
    labels = torch.from_numpy(np.asarray(targets, dtype=np.int64))
    start = checkpoint.restore(learner, optimizer, trained, fabric) if checkpoint else 0
    steps = math.ceil(len(items) / settings.batch_size)
    own_device = [fabric.device] if fabric.device.type == "cuda" else []  # the state of other GPUs is not ours to save
    for epoch in range(start, settings.epochs):
        learner.train()
        method.begin_epoch(epoch)
        order = np.random.default_rng((seed, epoch, 0)).permutation(len(items))
        batches = deal(order, settings.batch_size, method.smallest_batch)
        totals: dict[str, float] = {}
        shares = [batch[ranks.share(len(batch))] for batch in batches]
        for step, (chosen, (first, second)) in enumerate(zip(batches, source.pairs(shares, epoch), strict=True)):
            rate = learning_rate(settings, epoch + step / steps)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["scale"]
            rng = np.random.default_rng((seed, epoch, 1, step))
            at = [t.to(fabric.device) for t in (first, second, labels[chosen])]
            with torch.random.fork_rng(own_device):  # dropout and drop path draw from torch's own generator
                own = (ranks.rank,) if ranks.rank else ()  # other noise for other rows
                torch.manual_seed(int(np.random.default_rng((seed, epoch, 3, step, *own)).integers(2**62)))
                out = model(*at, epoch, rng)
            _check_finite(out["loss"], epoch, rate)
            optimizer.zero_grad(set_to_none=True)
            fabric.backward(out["loss"])
            optimizer.step()
            before = method.tau
            method.after_step()
            if method.tau is not None and method.tau != before:
                trained.threshold_path.append((epoch * steps + step, method.tau))
            for key, value in out.items():
                totals[key] = totals.get(key, 0.0) + float(value.detach()) * (1 if key == "created" else len(chosen))
            if progress:
                progress(len(chosen))
        method.load_scalars(fabric.broadcast(method.scalars()))  # unlike processors may round unlike
        row = {"epoch": epoch + 1, "lr": rate} | {k: v if k == "created" else v / len(items) for k, v in totals.items()}
        if method.tau is not None:
            row["tau"] = method.tau
        trained.log.append(row)
        if checkpoint and ranks.rank == 0:
            checkpoint.save(learner, optimizer, trained)
        if on_epoch:
            on_epoch(row)
    learner.eval()
    return trained


def deal(order: np.ndarray, size: int, smallest: int) -> list[np.ndarray]:
    """Batches of `size`; if the last would be smaller than `smallest`, as many batches of nearly the same size."""
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    return batches if len(batches[-1]) >= min(smallest, size) else np.array_split(order, len(batches))


def make_optimizer(learner: Learner, settings: Settings) -> torch.optim.Optimizer:
    """The optimiser of tail and head; a group's "scale" is its rate in units of the tail's."""
    head_lr = settings.lr if settings.head_lr is None else settings.head_lr
    head_decay = settings.weight_decay if settings.head_weight_decay is None else settings.head_weight_decay
    groups: list[dict[str, Any]] = [
        {"params": _learning(learner.backbone), "weight_decay": settings.weight_decay, "scale": 1.0},
        {"params": _learning(learner.method), "weight_decay": head_decay, "scale": head_lr / settings.lr},
    ]
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=settings.lr)


def _learning(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters() if p.requires_grad]


def blend_tail(backbone: Backbone, before: dict[str, Tensor], share: float) -> None:
    """Move the tail to (1 - share) of the weights before training and `share` of those it has now.

    Learning a few classes makes features of all others more alike; part of the way back to the pretrained weights
    keeps most of what was learnt and most of what would have been lost (weight averaging, as in WiSE-FT).
    """
    if share < 1:
        after = backbone.tail_state()
        mixed = {key: torch.lerp(before[key].to(value), value, share) for key, value in after.items()}
        backbone.model.load_state_dict(mixed, strict=False)


def learning_rate(settings: Settings, epoch: float) -> float:
    """Linear warm-up from `warmup_lr`, then a cosine to `final_lr`, both never above the rate itself."""
    peak, floor = settings.lr, min(settings.final_lr, settings.lr)
    if epoch < settings.warmup_epochs:
        low = min(settings.warmup_lr, peak)
        return low + (peak - low) * epoch / settings.warmup_epochs
    span = max(settings.epochs - settings.warmup_epochs, 1e-9)
    return floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * min((epoch - settings.warmup_epochs) / span, 1.0)))


def _check_finite(loss: Tensor, epoch: int, rate: float) -> None:
    if not bool(torch.isfinite(loss)):
        raise diverged(f"the loss became {float(loss.detach())}", epoch, rate)


def diverged(what: str, epoch: int, rate: float) -> NewfoundError:
    """The error for a training that has left all bounds."""
    return NewfoundError(
        f"{what} in epoch {epoch + 1} at learning rate {rate:g}: training has diverged. Try a lower rate "
        f"(--set lr={rate / 10:g}) or full precision."
    )
