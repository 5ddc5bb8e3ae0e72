"""Pictures of a trained run that creates: where MKEE moves mixed samples, and where created samples lie (t-SNE).

Both show what the run's dictionary is given: unit features, centred if the run centres them, or readings where it
weighs evidence. Inputs are the images' centre views, in the space that the run creates in; a batch is its own
reference, as in training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from newfound.benchmarks.creator_inputs import creator_inputs
from newfound.benchmarks.figure_style import CLOUDS, DOUBLE, LIGHT, Drawing, panels, style, words
from newfound.creation import MKEE, Creator, Model
from newfound.creation.mkee import kernel_density
from newfound.datasets import LabelledImages
from newfound.errors import DataError, SettingsError
from newfound.images import open_image
from newfound.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SEEN = 0.05  # of the picture's width: arrows that are shorter on average are drawn longer, and the picture says so
_COLUMNS = (
    "kind", "class", "x", "y", "partner", "share", "to_x", "to_y", "moved",
    "entropy", "to_entropy", "density", "to_density",
)  # fmt: skip


def perturbation(run: Run, labelled: LabelledImages, *, samples: int = 60, classes: int = 5, seed: int = 0) -> Drawing:
    """Prototypes, known samples, and arrows from each mixup anchor x_mix to x_pus, where MKEE takes it (Eq. 6 to 8).

    All in one plane, that of the first two principal components of the known features and prototypes. The rows hold
    true positions; where steps are too short to be seen, arrows are longer by a factor that the legend states.

    Args:
        samples: images drawn at random, all if there are fewer; each is a known sample and, with a partner, an anchor.
        classes: how many of the known classes to show, the first ones.

    Raises:
        SettingsError: the run's method does not create with MKEE, or fewer than two classes are asked for.
        DataError: `labelled` lacks one of the classes, or the images drawn are all of one class.
    """
    creator = _creator(run)
    if not isinstance(creator, MKEE):
        raise SettingsError(
            f"{run.label} creates with {type(creator).__name__}, which takes no step: take a run with creator=mkee."
        )
    batch = _batch(run, labelled, samples, classes, seed)
    first, second, shares = creator.draw(batch.targets, batch.rng())
    x_mix = creator.blend(batch.inputs, batch.targets, batch.rng())  # which draws the same
    x_pus = creator.perturb(x_mix, batch.model, batch.reference)
    known, mixed, moved = (batch.seen(inputs) for inputs in (batch.inputs, x_mix, x_pus))
    prototypes = _prototypes(run)[: len(batch.classes)]
    plane, explained = _plane(np.concatenate([known, prototypes]))
    here, there = plane(mixed), plane(moved)
    steps = np.linalg.norm(moved - mixed, axis=1)
    entropy, density = _entropy_and_density(creator, batch, x_mix, x_pus)
    rows = _rows("prototype", batch.classes, plane(prototypes)) + _rows("known", batch.names, plane(known))
    rows += _rows(
        "created", [batch.names[i] for i in first], here, partner=[batch.names[j] for j in second], share=shares,
        to_x=there[:, 0], to_y=there[:, 1], moved=steps,
        entropy=entropy[0], to_entropy=entropy[1], density=density[0], to_density=density[1],
    )  # fmt: skip
    factor = _magnification(there - here, np.ptp(plane(known), axis=0).max())
    with style():
        figure, (ax,) = panels(1, 1, width=DOUBLE, height=3.9)
        _draw_known(ax, batch, plane(known), faint=True)
        for place, look in zip(plane(prototypes), CLOUDS, strict=False):
            ax.plot(*place, look.marker, color=look.colour, markersize=9, markeredgecolor="black", zorder=3)
        _draw_steps(ax, here, there, factor)
        ax.set_xlabel(f"first principal component ({explained[0]:.0%} of variance)")
        ax.set_ylabel(f"second ({explained[1]:.0%} of variance)")
        ax.set_aspect("equal", adjustable="datalim")
        _legend(figure, ax)
    relative = " of the input's norm" if creator.relative_step else ""
    drawn = f" Arrows are drawn {factor:,} times as long as the steps." if factor > 1 else ""
    caption = (
        f"Known samples (small), prototypes (large), and {len(here)} samples x_mix with where MKEE takes them, a step "
        f"of {creator.eps:g}{relative} in {batch.space}. Their unit features move by {steps.mean():.2g} on average; "
        f"their entropy changes from {_change(entropy)} nats, their density from {_change(density)}.{drawn}"
    )
    return Drawing(figure, [dict.fromkeys(_COLUMNS, "") | row for row in rows], caption)


def tsne(run: Run, labelled: LabelledImages, *, samples: int = 150, classes: int = 10, seed: int = 0) -> Drawing:
    """t-SNE of known samples, a colour and marker a class, and of pseudo-novel samples created from them, in black.

    Args:
        samples: images drawn at random, all if there are fewer; each is a known sample and the start of a created one.
        classes: how many of the known classes to show, the first ones.

    Raises:
        SettingsError: the run's method creates nothing while it learns, or fewer than two classes are asked for.
        DataError: `labelled` lacks one of the classes, or the images drawn are all of one class.
    """
    from sklearn.manifold import TSNE

    creator = _creator(run)
    batch = _batch(run, labelled, samples, classes, seed)
    created = creator(batch.inputs, batch.targets, batch.model, batch.reference, batch.rng())
    made = batch.read(created) if "features" in creator.spaces else batch.seen(created)
    features = np.concatenate([batch.seen(batch.inputs), made])
    perplexity = min(30.0, (len(features) - 1) / 3)
    # Exact: the sums of the approximate method depend on how threads take turns, and so would the picture.
    embedding = TSNE(metric="cosine", init="pca", perplexity=perplexity, method="exact", random_state=seed)
    places = embedding.fit_transform(features)
    known, made = places[: len(batch.names)], places[len(batch.names) :]
    with style():
        figure, (ax,) = panels(1, 1, width=DOUBLE, height=3.9)
        _draw_known(ax, batch, known)
        ax.plot(*made.T, "^", color="black", markersize=3.2, markeredgewidth=0, label="pseudo-novel")
        ax.set(xticks=[], yticks=[])  # a position in t-SNE has no unit
        ax.spines[:].set(visible=True, color=LIGHT)
        ax.set_aspect("equal", adjustable="datalim")
        _legend(figure, ax)
    caption = (
        f"t-SNE of {len(known)} known samples of {len(batch.classes)} classes, and of {len(made)} pseudo-novel samples "
        f"that {type(creator).__name__} creates from them; cosine distances, perplexity {perplexity:.0f}."
    )
    return Drawing(figure, _rows("known", batch.names, known) + _rows("created", [""] * len(made), made), caption)


@dataclass(frozen=True)
class _Batch:
    """Known images as a creator is given them."""

    run: Run
    space: str
    classes: list[str]  # that were chosen
    inputs: Tensor
    targets: Tensor
    names: list[str]  # of each input's class
    model: Model
    reference: Tensor
    seed: int

    def rng(self) -> np.random.Generator:
        """The creator's randomness, from its start every time."""
        return np.random.default_rng((self.seed, 1))

    def seen(self, inputs: Tensor) -> np.ndarray:
        """What the dictionary is given for inputs."""
        with torch.no_grad():
            return self.read(self.model.encode(inputs))

    def read(self, features: Tensor) -> np.ndarray:
        """What the dictionary is given for unit features."""
        with torch.no_grad():
            return self.run.method.read(features, self.run.known).float().cpu().numpy()


def _batch(run: Run, labelled: LabelledImages, samples: int, classes: int, seed: int) -> _Batch:
    if not 2 <= classes <= len(CLOUDS):
        raise SettingsError(f"classes={classes}: choose 2 to {len(CLOUDS)}, which is as many as can be told apart.")
    chosen = run.classes[:classes]
    data = labelled.of_classes(chosen)
    picked = np.random.default_rng(seed).permutation(len(data))[: max(samples, 0)]
    data = data.subset(np.sort(picked))
    if len(data.classes) < 2:
        raise DataError(f"samples={samples}, classes={classes}: two classes are needed to create from; draw more.")
    given = creator_inputs(run, torch.stack([run.encoder.views.centre(open_image(item)) for item in data.items]))
    targets = torch.tensor([run.classes.index(label) for label in data.labels], device=given.inputs.device)
    return _Batch(run, given.space, chosen, given.inputs, targets, data.labels, given.model, given.reference, seed)


def _creator(run: Run) -> Creator:
    creator = getattr(run.method, "creator", None)
    if creator is None:
        raise SettingsError(f"{run.label}: nothing is created while it learns; take a run of a method such as ltc.")
    creator.ready()
    return creator


def _prototypes(run: Run) -> np.ndarray:
    """What the dictionary knows of each class: its prototype, or the mean of its readings."""
    known = run.known
    return known["prototypes"] if "prototypes" in known else known["sums"] / known["counts"][:, None]


def _entropy_and_density(creator: MKEE, batch: _Batch, x_mix: Tensor, x_pus: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The two terms of Eq. 7 before and after the step, [2, n] each, at one bandwidth so that they can be compared."""
    with torch.no_grad():
        features = batch.model.encode(torch.cat([x_mix, x_pus]))
        # In double precision: near its maximum, entropy changes by less than single precision can tell.
        log_p = torch.log_softmax(batch.model.classify(features).double(), dim=1)
        entropy = -(log_p.exp() * log_p).sum(1)
        density = kernel_density(features.double(), batch.reference.double(), creator.sigma_0)
    return entropy.reshape(2, -1).cpu().numpy(), density.reshape(2, -1).cpu().numpy()


def _plane(points: np.ndarray) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """The projection on the plane in which points differ most, and the share of their variance along its two axes."""
    from sklearn.decomposition import PCA

    found = PCA(2, svd_solver="full").fit(points)
    return found.transform, found.explained_variance_ratio_


def _magnification(steps: np.ndarray, width: float) -> int:
    """The first of 1, 2, 5, 10, 20, ... that makes steps long enough to be seen; 1 if there are none to see."""
    mean = float(np.linalg.norm(steps, axis=1).mean())
    factors = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    return next((factor for factor in factors if factor * mean >= _SEEN * width), 1)


def _draw_known(ax: Axes, batch: _Batch, places: np.ndarray, *, faint: bool = False) -> None:
    for name, look in zip(batch.classes, CLOUDS, strict=False):
        mine = places[[other == name for other in batch.names]]
        ax.plot(
            *mine.T, look.marker, color=look.colour, label=words(name),
            markersize=4.5, markeredgewidth=0, alpha=0.6 if faint else 1.0,
        )  # fmt: skip


def _draw_steps(ax: Axes, here: np.ndarray, there: np.ndarray, factor: int) -> None:
    steps = factor * (there - here)
    ax.plot(
        *here.T, "o", color="black", markerfacecolor="white", markersize=2.8, markeredgewidth=0.6, zorder=5,
        label=r"$x_{\mathrm{mix}}$",
    )  # fmt: skip
    ax.quiver(
        *here.T, *steps.T, angles="xy", scale_units="xy", scale=1, units="inches", width=0.009, color="black", zorder=4
    )
    ax.update_datalim(here + steps)  # an arrow's end may lie outside of all points
    larger = f" (arrows × {factor:,})" if factor > 1 else ""
    # Stand-ins, for the legend alone.
    sign: dict[str, Any] = {"linestyle": "none", "color": "black", "markersize": 9}
    ax.plot([], [], marker=r"$\rightarrow$", markeredgewidth=0, label=rf"to $x_{{\mathrm{{pus}}}}${larger}", **sign)
    ax.plot([], [], marker="o", markerfacecolor="white", label="prototypes (large)", **sign)


def _legend(figure: Figure, ax: Axes) -> None:
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")


def _rows(kind: str, names: Sequence[str], places: np.ndarray, **more: Any) -> list[dict[str, Any]]:
    columns = {"class": names, "x": places[:, 0], "y": places[:, 1]} | more
    plain = {name: [v.item() if isinstance(v, np.generic) else v for v in values] for name, values in columns.items()}
    return [{"kind": kind} | {name: values[i] for name, values in plain.items()} for i in range(len(places))]


def _change(values: np.ndarray) -> str:
    before, after = values.mean(axis=1)
    return f"{before:.4g} by {after - before:+.2g}"
