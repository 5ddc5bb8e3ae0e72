"""The paper's curves from results: sensitivity to the loss weights, and the adaptive threshold against fixed ones.

Every function takes results of one data set, backbone, method and preset that differ in nothing but their seed and the
settings that the figure varies; others are refused, not averaged. A point is the mean over all seeds and stream orders,
its bar their standard deviation. Points without a result are left out. Accuracies are in percent.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from newfound import presets
from newfound.benchmarks.plotting import DOUBLE, GREY, LINES, PLAIN, Drawing, Look, panels, style
from newfound.benchmarks.store import Result
from newfound.errors import DataError
from newfound.method import Settings

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
                rows += [about | {"kind": kind} | _point(there, protocol, kind) for kind in KINDS]
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
    return _over_tau(results, found, sorted({beta for _, beta in found}), kind, shows)


def adaptive_against_fixed(results: Sequence[Result], beta: float = 0.01, kind: str = "all") -> Drawing:
    """Accuracy of the adaptive threshold with this beta, and of the fixed one, against the value they start at.

    Raises:
        DataError: one of the two has no result, or the results cannot stand in one figure.
    """
    found = _places(results, THRESHOLD)
    for needed in (beta, 0.0):
        if not any(there == needed for _, there in found):
            raise _missing(f"beta {needed:g}", THRESHOLD, found)
    two = {at: there for at, there in found.items() if at[1] in (beta, 0.0)}
    shows = "The adaptive threshold and the fixed one, against the value that they start at."
    return _over_tau(results, two, [0.0, beta], kind, shows)


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
                rows.append(about | {"gain": statistics.fmean(gains)} | _spread(gains))
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
    return Drawing(figure, rows, f"{shows} {_caption(results, THRESHOLD)}")


def _over_tau(results: Sequence[Result], found: Places, betas: Sequence[float], kind: str, shows: str) -> Drawing:
    rows: Rows = [
        {"protocol": protocol, "kind": kind, "beta": beta, "tau_init": tau_init} | _point(there, protocol, kind)
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
    return Drawing(figure, rows, f"{shows} {_caption(results, THRESHOLD)}")


def _places(results: Sequence[Result], varied: tuple[str, ...]) -> Places:
    """Results by the values of the settings that vary; DataError if they differ in anything else but their seed."""
    found: Places = {}
    seen: dict[str, set[str]] = {}
    for result in results:
        settings = dataclasses.asdict(_settings(result))
        if absent := [name for name in varied if name not in settings]:
            raise DataError(f"{result['method']} has no {absent[0]}: this figure is of methods that do, such as ltc.")
        found.setdefault(tuple(round(float(settings.pop(name)), 6) for name in varied), []).append(result)
        for name, value in ({name: result[name] for name in _SAME} | settings).items():
            seen.setdefault(name, set()).add(str(value))
    unlike = [f"{name} ({' or '.join(sorted(values))})" for name, values in seen.items() if len(values) > 1]
    if unlike:
        raise DataError(f"these results do not belong in one figure: they differ in {'; '.join(unlike[:3])}.")
    return found


def _settings(result: Result) -> Settings:
    """All settings of a result: it lists only those that are not its preset's own."""
    for name, short in itertools.product(presets.PRESETS, (False, True)):
        if presets.label(name, short=short) == result["preset"]:
            return presets.resolve(result["method"], name, short=short, overrides=result["settings"])
    raise DataError(f"a result is of preset {result['preset']!r}, which this newfound does not have.")


def _streams(results: Sequence[Result], protocol: str, kind: str) -> dict[tuple[int, int], float]:
    """Accuracy in percent by seed and stream order."""
    return {
        (result["seed"], order): 100 * scores[protocol][kind]
        for result in results
        for order, scores in enumerate(result["scores"])
    }


def _point(results: Sequence[Result], protocol: str, kind: str) -> dict[str, Any]:
    values = list(_streams(results, protocol, kind).values())
    return {"accuracy": statistics.fmean(values)} | _spread(values)


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"spread": statistics.stdev(values) if len(values) > 1 else None, "streams": len(values)}


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
    """What was measured: data, backbone, method, and how many trainings and streams stand behind a figure."""
    one = results[0]
    also = "".join(f", {name}={value}" for name, value in one["settings"].items() if name not in varied)
    seeds, commits = (sorted({str(result[name]) for result in results}) for name in ("seed", "commit"))
    orders = "one random stream order" if one["orders"] == 1 else f"{one['orders']} random stream orders"
    return (
        f"{one['data']['protocol']}, {one['data']['known']} known classes of {one['data']['classes']}; backbone "
        f"{one['backbone']}; {one['method']}, {one['preset']}{also}; {'seed' if len(seeds) == 1 else 'seeds'} "
        f"{', '.join(seeds)}, {orders} each: means, standard deviations as bars; commit {', '.join(commits)}."
    )
