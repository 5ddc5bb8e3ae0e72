"""The paper's curves from results: sensitivity to the loss weights, and the adaptive threshold against fixed ones.

Every function takes results of one data set, backbone, method and preset that differ in nothing but their seed and the
settings that the figure varies; others are refused, not averaged. A point is the mean over all seeds and stream orders,
its bar their standard deviation. Points without a result are left out. Accuracies are in percent. Rows of the figures
of thresholds also have the cut that trainings ended with: a short one hardly moves it if beta is small.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from newfound.benchmarks import pretraining
from newfound.benchmarks.figure_style import DOUBLE, GREY, LINES, PLAIN, Drawing, Look, panels, style
from newfound.benchmarks.result_settings import resolved
from newfound.benchmarks.store import Result
from newfound.benchmarks.tables import seeds_in_words
from newfound.errors import DataError
from newfound.presets import PRESETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROTOCOLS, KINDS = ("strict", "greedy"), ("all", "old", "new")
# What is held, at which value, and what varies: the first and the third are in the paper, the others in its supplement.
SLICES = (
    ("gamma_mm", 0.05, "alpha"), ("gamma_mm", 0.5, "alpha"),
    ("alpha", 0.3, "gamma_mm"), ("alpha", 0.7, "gamma_mm"),
)  # fmt: skip
LOSS_WEIGHTS, THRESHOLD = ("alpha", "gamma_mm"), ("tau_init", "beta")
PAPERS_BETA: float = PRESETS["paper"]["beta"]
_SYMBOLS = {
    "alpha": r"$\alpha$", "gamma_mm": r"$\gamma_{\mathrm{mm}}$",
    "tau_init": r"$\tau_{\mathrm{init}}$", "beta": r"$\beta$",
}  # fmt: skip
_SAME = ("data", "backbone", "weights", "method", "preset", "orders")  # what the results of one figure share
Rows = list[dict[str, Any]]
Places = dict[tuple[float, ...], list[Result]]


def sensitivity(results: Sequence[Result], protocol: str = "greedy") -> Drawing:
    """Accuracy against alpha and against gamma_mm, the other held at two values each; Greedy, as in the paper.

    Raises:
        DataError: there is no result to draw, or results that cannot stand in one figure.
    """
    found = _places(results, LOSS_WEIGHTS)
    rows: Rows = []
    for held, value, varied in SLICES:
        for (alpha, gamma_mm), there in sorted(found.items()):
            at = {"alpha": alpha, "gamma_mm": gamma_mm}
            if at[held] == value:
                about = {"held": f"{held}={value}", "varied": varied, "value": at[varied], "protocol": protocol}
                kinds = [kind for kind in KINDS if _streams(there, protocol, kind)]
                rows += [about | {"kind": kind} | _point(there, protocol, kind) for kind in kinds]
    if not rows:
        raise _missing("gamma_mm 0.05 or 0.5, or alpha 0.3 or 0.7", LOSS_WEIGHTS, found)
    with style():
        figure, axes = panels(2, 2, width=DOUBLE, height=4.1, sharey=True)
        for (held, value, varied), ax in zip(SLICES, axes, strict=True):
            mine = [row for row in rows if row["held"] == f"{held}={value}"]
            for kind, look in zip(KINDS, LINES, strict=False):
                _line(ax, [row for row in mine if row["kind"] == kind], "value", kind.capitalize(), look)
            _finish(ax, f"{_SYMBOLS[held]} = {value}", _SYMBOLS[varied], empty=not mine)
        for ax in axes[::2]:
            ax.set_ylabel(f"{protocol.capitalize()} accuracy (%)")
        _legend(figure, axes, len(KINDS))
    shows = f"{protocol.capitalize()} accuracy against the weights of the contrastive and the margin loss."
    return Drawing(figure, rows, f"{shows} {_caption(results, LOSS_WEIGHTS)}")


def threshold_curves(results: Sequence[Result], kind: str = "all") -> Drawing:
    """Accuracy against tau_init, a line for each beta, Strict beside Greedy; beta 0 is a threshold that stays fixed.

    Raises:
        DataError: there is no result to draw, or results that cannot stand in one figure.
    """
    found = _places(results, THRESHOLD)
    if not found:
        raise _missing("any tau_init and beta", THRESHOLD, found)
    shows = "Accuracy against the threshold's start, for each rate at which it adapts."
    return _over_tau(found, kind, shows)


def adaptive_against_fixed(results: Sequence[Result], beta: float = PAPERS_BETA, kind: str = "all") -> Drawing:
    """Accuracy of the adaptive threshold with this beta, and of the fixed one, against the value they start at.

    The paper's beta, unless told otherwise: another is chosen by whoever has seen its curve.

    Raises:
        DataError: one of the two has no result, or the results cannot stand in one figure.
    """
    found = _places(results, THRESHOLD)
    for needed in (beta, 0.0):
        if not any(there == needed for _, there in found):
            raise _missing(f"beta {needed:g}", THRESHOLD, found)
    two = {at: there for at, there in found.items() if at[1] in (beta, 0.0)}
    papers = ", the paper's" if beta == PAPERS_BETA else ""
    shows = f"The adaptive threshold (beta {beta:g}{papers}) and the fixed one, against the value that they start at."
    return _over_tau(two, kind, shows)


def adaptive_gain(results: Sequence[Result], kind: str = "all") -> Drawing:
    """What the adaptive threshold gives over the fixed one at each tau_init, in points, for each beta.

    A gain is the mean of differences between streams that are alike in seed and order, its bar their standard
    deviation; streams that only one of the two has are left out.

    Raises:
        DataError: no tau_init has both, or the results cannot stand in one figure.
    """
    found = _places(results, THRESHOLD)
    rows: Rows = []
    for protocol in PROTOCOLS:
        for (tau_init, beta), there in sorted(found.items(), key=lambda one: one[0][::-1]):
            adaptive = _streams(there, protocol, kind)
            fixed = _streams(found.get((tau_init, 0.0), []), protocol, kind)
            gains = [adaptive[stream] - fixed[stream] for stream in adaptive if stream in fixed]
            if beta > 0 and gains:
                about = {"protocol": protocol, "kind": kind, "beta": beta, "tau_init": tau_init}
                rows.append(about | {"final_tau": _final_tau(there), "gain": statistics.fmean(gains)} | _spread(gains))
    if not rows:
        raise _missing("beta 0 and another beta at the same tau_init and seed", THRESHOLD, found)
    betas = sorted({row["beta"] for row in rows})
    starts = sorted({row["tau_init"] for row in rows})
    step = min([0.15, *(b - a for a, b in itertools.pairwise(starts))])
    width = 0.8 * step / len(betas)
    with style():
        figure, axes = panels(1, 2, width=DOUBLE, height=2.5, sharey=True)
        for ax, protocol in zip(axes, PROTOCOLS, strict=True):
            for i, (beta, look) in enumerate(zip(betas, _looks(betas), strict=True)):
                mine = [row for row in rows if (row["protocol"], row["beta"]) == (protocol, beta)]
                ax.bar(
                    [row["tau_init"] + (i - (len(betas) - 1) / 2) * width for row in mine],
                    [row["gain"] for row in mine], width,
                    yerr=[row["spread"] or 0.0 for row in mine] if any(row["spread"] for row in mine) else None,
                    label=_beta(beta), facecolor=look.colour, edgecolor="white", hatch=look.hatch, linewidth=0.3,
                    error_kw={"elinewidth": 0.6, "ecolor": GREY},
                )  # fmt: skip
            ax.axhline(0, color="black", linewidth=0.6)
            _finish(ax, protocol.capitalize(), _SYMBOLS["tau_init"], ticks=starts)
            ax.grid(visible=False, axis="x")
        axes[0].set_ylabel(f"adaptive − fixed, {kind.capitalize()} (points)")
        _legend(figure, axes, len(betas))
    shows = "What the adaptive threshold gains over the fixed one, against the value that they start at."
    return Drawing(figure, rows, f"{shows} {_moved(found)}{_caption(results, THRESHOLD)}")


def _over_tau(found: Places, kind: str, shows: str) -> Drawing:
    betas = sorted({beta for _, beta in found})
    rows: Rows = [
        {"protocol": protocol, "kind": kind, "beta": beta, "tau_init": tau_init, "final_tau": _final_tau(there)}
        | _point(there, protocol, kind)
        for protocol in PROTOCOLS
        for (tau_init, beta), there in sorted(found.items(), key=lambda one: one[0][::-1])
    ]
    with style():
        figure, axes = panels(1, 2, width=DOUBLE, height=2.6, sharey=True)
        for ax, protocol in zip(axes, PROTOCOLS, strict=True):
            for beta, look in zip(betas, _looks(betas), strict=True):
                mine = [row for row in rows if (row["protocol"], row["beta"]) == (protocol, beta)]
                _line(ax, mine, "tau_init", _beta(beta), look)
            _finish(ax, protocol.capitalize(), _SYMBOLS["tau_init"], ticks=sorted({row["tau_init"] for row in rows}))
        axes[0].set_ylabel(f"{kind.capitalize()} accuracy (%)")
        _legend(figure, axes, len(betas))
    drawn = [result for there in found.values() for result in there]
    return Drawing(figure, rows, f"{shows} {_moved(found)}{_caption(drawn, THRESHOLD)}")


def _places(results: Sequence[Result], varied: tuple[str, ...]) -> Places:
    """Results by the values of the settings that vary; DataError if they differ in anything else but their seed."""
    found: Places = {}
    seen: dict[str, set[str]] = {}
    for result in results:
        settings = dataclasses.asdict(resolved(result))
        if absent := [name for name in varied if name not in settings]:
            raise DataError(f"{result['method']} has no {absent[0]}: this figure is of methods that do, such as ltc.")
        found.setdefault(tuple(round(float(settings.pop(name)), 6) for name in varied), []).append(result)
        for name, value in ({name: result[name] for name in _SAME} | settings).items():
            seen.setdefault(name, set()).add(str(value))
    unlike = [f"{name} ({' or '.join(sorted(values))})" for name, values in seen.items() if len(values) > 1]
    if unlike:
        raise DataError(f"these results do not belong in one figure: they differ in {'; '.join(unlike[:3])}.")
    return found


def _streams(results: Sequence[Result], protocol: str, kind: str) -> dict[tuple[int, int], float]:
    """Accuracy in percent by seed and stream order; nothing where the stream has no images of this kind."""
    return {
        (result["seed"], order): 100 * scores[protocol][kind]
        for result in results
        for order, scores in enumerate(result["scores"])
        if scores[protocol][kind] is not None
    }


def _point(results: Sequence[Result], protocol: str, kind: str) -> dict[str, Any]:
    values = list(_streams(results, protocol, kind).values())
    return {"accuracy": statistics.fmean(values)} | _spread(values)


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"spread": statistics.stdev(values) if len(values) > 1 else None, "streams": len(values)}


def _final_tau(results: Sequence[Result]) -> float:
    """The cut that trainings ended with, their mean."""
    return statistics.fmean(result["threshold"]["value"] for result in results)


def _moved(found: Places) -> str:
    """How far adaptive thresholds came: a sentence with the mean distance for each beta; nothing if none adapts."""
    ways: dict[float, list[float]] = {}
    for (tau_init, beta), there in sorted(found.items(), key=lambda one: one[0][::-1]):
        ways.setdefault(beta, []).extend(abs(result["threshold"]["value"] - tau_init) for result in there)
    told = [f"{statistics.fmean(moved):.2g} with beta {beta:g}" for beta, moved in ways.items() if beta]
    return f"While training, the threshold moved by {', '.join(told)}, on average. " if told else ""


def _missing(needed: str, varied: Sequence[str], found: Places) -> DataError:
    there = "; ".join(
        " ".join(f"{name} {value:g}" for name, value in zip(varied, place, strict=True)) for place in sorted(found)[:5]
    )
    more = f" and {len(found) - 5} more" if len(found) > 5 else ""
    return DataError(f"nothing to draw: a result with {needed} is missing. There is {there or 'none at all'}{more}.")


def _line(ax: Axes, rows: Rows, x: str, label: str, look: Look) -> None:
    spreads = [row["spread"] or 0.0 for row in rows]
    ax.errorbar(
        [row[x] for row in rows], [row["accuracy"] for row in rows], yerr=spreads if any(spreads) else None,
        label=label, color=look.colour, marker=look.marker, linestyle=look.line, elinewidth=0.6, capsize=1.5,
        markerfacecolor="white" if look is PLAIN else look.colour,
    )  # fmt: skip


def _finish(ax: Axes, title: str, x_label: str, *, ticks: Sequence[float] = (), empty: bool = False) -> None:
    ax.set_title(title)
    ax.set_xlabel(x_label)
    if 0 < len(ticks) <= 8:  # more would not fit; matplotlib then finds round ones
        ax.set_xticks(ticks)
    if empty:
        ax.text(0.5, 0.5, "no results", transform=ax.transAxes, ha="center", va="center", color=GREY)


def _legend(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside upper center", ncols=columns)


def _looks(betas: Sequence[float]) -> list[Look]:
    adaptive = itertools.cycle(LINES)
    return [next(adaptive) if beta else PLAIN for beta in betas]


def _beta(beta: float) -> str:
    return f"adaptive, {_SYMBOLS['beta']} = {beta:g}" if beta else f"fixed ({_SYMBOLS['beta']} = 0)"


def _caption(results: Sequence[Result], varied: Sequence[str]) -> str:
    """What was measured, from how many trainings and streams, when, and what the backbone had seen before."""
    one = results[0]
    data = one["data"]
    drawn = "" if data["class_seed"] is None else f" (class seed {data['class_seed']})"
    also = "".join(f", {name}={value}" for name, value in one["settings"].items() if name not in varied)
    tried, commits = seeds_in_words((r["seed"] for r in results), one["orders"]), sorted({r["commit"] for r in results})
    days = sorted({result["time"][:10] for result in results})
    return (
        f"{data['protocol']}, {data['known']} known classes of {data['classes']}{drawn}; backbone {one['backbone']}; "
        f"{one['method']}, {one['preset']}{also}; {tried}: "
        f"means, standard deviations as bars; commit {', '.join(commits)}, "
        f"{' to '.join(dict.fromkeys((days[0], days[-1])))}. "
        f"{pretraining.in_words(one['backbone'], data['protocol'], one['weights'])}"
    )
