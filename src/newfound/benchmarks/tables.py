"""Results become tables: Markdown for people, CSV for programs, LaTeX for papers."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from newfound.benchmarks import pretraining
from newfound.benchmarks.store import Result

PROTOCOLS, KINDS = ("strict", "greedy", "named"), ("all", "old", "new")
_LATEX = {c: rf"\{c}" for c in "&%_#${}"} | {"|": r"$|$"}
_LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
Values = Callable[[Result], list[float]]  # a figure of a result, in each of its stream orders


@dataclass(frozen=True)
class Column:
    """What a table shows of its lines: one figure, or several that belong together, such as All, Old and New.

    Args:
        better: which value is the best: the highest, the lowest, or the one nearest to the number of classes.
        oracle: the cut was chosen on the stream that is scored.
    """

    title: str
    parts: tuple[tuple[str, Values], ...]
    scale: float = 100
    digits: int = 1
    spread: bool = True
    better: Literal["higher", "lower", "classes"] = "higher"
    oracle: bool = False

    def figures(self, results: Sequence[Result]) -> list[tuple[float, float | None] | None]:
        """Mean and spread of each part over all values there are; None where there is none, or no spread of one."""
        found: list[tuple[float, float | None] | None] = []
        for _, values in self.parts:
            every = [self.scale * value for result in results for value in values(result)]
            spread = statistics.stdev(every) if self.spread and len(every) > 1 else None
            found.append((statistics.fmean(every), spread) if every else None)
        return found

    def texts(self, results: Sequence[Result]) -> list[str]:
        return ["-" if f is None else f"{f[0]:.{self.digits}f}" for f in self.figures(results)]

    def cell(self, results: Sequence[Result]) -> str:
        """All parts in one cell, with the first one's spread."""
        first, text = self.figures(results)[0], " / ".join(self.texts(results))
        if first is None or first[1] is None:
            return text
        spread = f"± {first[1]:.{self.digits}f}"
        return f"{text} ({spread})" if len(self.parts) > 1 else f"{text} {spread}"

    def latex(self, results: Sequence[Result]) -> list[str]:
        """A cell for each part, with its spread."""
        cells = []
        for text, figure in zip(self.texts(results), self.figures(results), strict=True):
            spread = "" if figure is None or figure[1] is None else rf" {{\tiny $\pm$ {figure[1]:.{self.digits}f}}}"
            cells.append(text + spread)
        return cells


@dataclass(frozen=True)
class Table:
    """Lines of results under a title.

    Args:
        lines: the results of each line, by its name.
        missing: why lines have no result, by their name.
        notes: what a reader must know besides, a sentence each.
        class_order: the scores are those of the stream in class order.
    """

    title: str
    columns: tuple[Column, ...]
    lines: dict[str, list[Result]]
    missing: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    class_order: bool = False

    def rows(self, *, brief: bool = False) -> list[list[str]]:
        """Text cells, the header first; brief ones leave out oracles, costs and presets."""
        columns = [c for c in self.columns if not brief or not (c.oracle or c.better == "lower")]
        header = ["", *(_titled(column) for column in columns), *([] if brief else ["preset"]), "seeds"]
        rows = [header]
        for name, results in self.lines.items():
            preset = [] if brief else [_presets(results)]
            rows.append([name, *(c.cell(results) for c in columns), *preset, str(len(results))])
        return rows

    def caption(self) -> str:
        """What the figures are of: data, backbone and what it was trained on, seeds, orders, commits, time."""
        every = [result for found in self.lines.values() for result in found]
        data = every[0]["data"]
        own = data["protocol"].startswith("own ")
        drawn = "" if data["class_seed"] is None else f"class seed {data['class_seed']}'s"
        classes = "its" if own else drawn or "the protocol's"
        draw = f" ({drawn} draw)" if own and drawn else ""  # of data of one's own, only which images are labelled
        weights = {result["backbone"]: result["weights"] for result in every}
        backbones = sorted(weights)
        seen = [pretraining.in_words(name, data["protocol"], weights[name]) for name in backbones]
        sizes = {result.get("image_size") for result in every}
        size = f" at {sizes.pop()} pixels" if len(sizes) == 1 and None not in sizes else ""
        orders = " or ".join(map(orders_in_words, sorted({result["orders"] for result in every})))
        scored = "seeds, the stream in class order" if self.class_order else f"seeds and {orders} each"
        times = sorted(result["time"][:10] for result in every)
        period = times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
        sentences = [
            f"{data['protocol']}, {classes} {data['known']} known classes of {data['classes']}, {data['labelled']:,} "
            f"labelled{draw} and {data['stream']:,} streamed images; backbone {', '.join(backbones)}{size}; mean (± "
            f"standard deviation, of All where there are three) over {scored}; newfound {every[0]['newfound']}, "
            f"commit {', '.join(sorted({result['commit'] for result in every}))}, {period}.",
            *seen,
            *self.notes,
        ]
        sentences += unread_in_words(every)
        if any("(short)" in result["preset"] for result in every):
            from newfound.presets import SHORT  # here: commands show their help without PyTorch

            form = f"{SHORT['epochs']} epochs on {SHORT['views']} cached views an image"
            sentences.append(f"(short): {form}, unless said otherwise.")
        if any(column.oracle for column in self.columns) and not self.class_order:
            sentences.append("Oracle: at the cut that is best for the scored stream; means over orders, ± over seeds.")
        if self.missing:
            some = "; ".join(f"{names} ({why})" for why, names in by_reason(self.missing).items())
            sentences.append(f"Not run, or not at every seed: {some}")
        return " ".join(sentences)

    def markdown(self) -> str:
        return f"{plain_markdown(self.rows())}\n{self.caption()}\n"

    def csv(self) -> str:
        return as_csv(self.lines, class_order=self.class_order)

    def latex(self) -> str:
        """A tabular for the package booktabs, every figure in a column of its own."""
        groups, names = [""], ["Method"]
        for column in self.columns:
            many = len(column.parts) > 1
            groups.append(rf"\multicolumn{{{len(column.parts)}}}{{c}}{{{_escaped(column.title)}}}" if many else "")
            names += [_escaped(title) for title, _ in column.parts] if many else [_escaped(column.title)]
        groups, names = [*groups, "", ""], [*names, "preset", "seeds"]
        lines = [rf"\begin{{tabular}}{{l{'r' * (len(names) - 3)}lr}}", r"\toprule"]
        lines += [" & ".join(groups) + r" \\", " & ".join(names) + r" \\", r"\midrule"]
        for name, results in self.lines.items():
            cells = [text for column in self.columns for text in column.latex(results)]
            ends = [_escaped(_presets(results)), str(len(results))]
            lines.append(" & ".join([_escaped(name), *cells, *ends]) + r" \\")
        told = " ".join(self.caption().split())  # on one line: a comment ends with it
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {told}"]) + "\n"


def by_reason(missing: Mapping[str, str]) -> dict[str, str]:
    """The names of the lines that have no result for the same reason, in one text, by the reason."""
    alike: dict[str, list[str]] = {}
    for name, why in missing.items():
        alike.setdefault(why, []).append(name)
    return {why: "; ".join(names) for why, names in alike.items()}


def plain_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text, the header first, as a Markdown table."""
    header, *body = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def plain_csv(rows: Sequence[Sequence[str]]) -> str:
    """As `plain_markdown`, as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def plain_latex(rows: Sequence[Sequence[str]]) -> str:
    """As `plain_markdown`, as a LaTeX tabular for the package booktabs."""
    header, *body = (" & ".join(map(_escaped, row)) + r" \\" for row in rows)
    start = rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}"
    return "\n".join([start, r"\toprule", header, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]) + "\n"


def accuracy(protocol: str, *, oracle: bool = False) -> Column:
    """All / Old / New under a protocol: at the method's own cut, or at the one with the best All of this protocol.

    A stream without images of known classes has no figure for Old, and one without others none for New.
    """

    def scored(r: Result) -> list[dict[str, float | None] | None]:
        if oracle:
            return [r["oracle"][protocol][protocol]] if r.get("oracle") else []
        return [s[protocol] for s in r["scores"]]

    def part(kind: str) -> Values:
        return lambda r: [value for s in scored(r) if s and (value := s[kind]) is not None]

    title = f"{protocol.capitalize()}, oracle" if oracle else protocol.capitalize()
    return Column(title, tuple((kind.capitalize(), part(kind)) for kind in KINDS), oracle=oracle)


def categories() -> Column:
    """How many categories the stream was given, known ones and those of a single image included."""
    return Column(
        "categories", (("", lambda r: [s["categories"] for s in r["scores"]]),), scale=1, digits=0, better="classes"
    )


def minutes() -> Column:
    """What learning took, rehearsals included and the caching of views, which methods share, left out."""

    def taken(r: Result) -> list[float]:
        cost = r.get("cost") or {}
        if "stages" in cost:
            return [sum(cost["stages"].get(name, 0.0) for name in ("rehearsing discovery", "learning"))]
        return [cost["train_cpu"]] if cost else []

    return Column("CPU minutes", (("", taken),), scale=1 / 60, spread=False, better="lower")


def creation_seconds() -> Column:
    """The time for 128 created samples, and how often 128 samples could be encoded in it, measured side by side."""

    def seconds(r: Result) -> list[float]:
        return [r["creation"]["seconds"]] if r.get("creation") else []

    def ratio(r: Result) -> list[float]:
        return [r["creation"]["seconds"] / r["creation"]["encode_seconds"]] if r.get("creation") else []

    parts = (("s", seconds), ("encodings", ratio))
    return Column("128 samples: s / encodings", parts, scale=1, digits=2, spread=False, better="lower")


def _titled(column: Column) -> str:
    names = [name for name, _ in column.parts]
    return f"{column.title} {' / '.join(names)}" if len(names) > 1 and ":" not in column.title else column.title


def _presets(results: Sequence[Result]) -> str:
    return ", ".join(sorted({result["preset"] for result in results}))


def orders_in_words(count: int) -> str:
    """`one random stream order`, `3 random stream orders`."""
    return "one random stream order" if count == 1 else f"{count} random stream orders"


def seeds_in_words(seeds: Iterable[int], orders: int) -> str:
    """`seed 0, in one random stream order`, `seeds 0, 1 and 2, each in 3 random stream orders`."""
    *others, last = map(str, sorted(set(seeds)))
    if not others:
        return f"seed {last}, in {orders_in_words(orders)}"
    return f"seeds {', '.join(others)} and {last}, each in {orders_in_words(orders)}"


def unread_in_words(results: Sequence[Result]) -> list[str]:
    """The sentence of a caption that tells of images that were left out; none if there are none."""
    labelled, streamed = (
        max(result.get("unread", {}).get(part, 0) for result in results) for part in ("labelled", "stream")
    )
    if not (labelled or streamed):
        return []
    return [f"Of the images, {labelled:,} labelled and {streamed:,} streamed ones cannot be read, and are left out."]


def as_csv(lines: dict[str, list[Result]], *, class_order: bool = False) -> str:
    """A line for each row, seed and stream order, with all that tells where it comes from.

    The column `order` is the number of a random order, "class" for the stream in class order, or the protocol whose
    oracle cut was taken (means over the random orders). With `class_order`, only the lines of that order.
    """
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    figures = [f"{p}_{k}" for p in PROTOCOLS for k in KINDS]
    about = ["data", "class_seed", "backbone", "weights", "method", "preset", "settings", "seed", "order"]
    out.writerow(["name", *about, "cut", *figures, "categories", "train_cpu_seconds", "commit", "time"])
    for name, results in lines.items():
        for r in results:
            settings = " ".join(f"{key}={value}" for key, value in r["settings"].items())
            data, own = r["data"], r["threshold"]["value"]
            known = [name, data["protocol"], data["class_seed"], r["backbone"], r["weights"], r["method"], r["preset"]]
            scored = [(str(order), own, scores) for order, scores in enumerate(r["scores"])]
            scored += [("class", own, r["class_order"])] if r.get("class_order") else []
            scored += [(f"oracle {p}", found["cut"], found) for p, found in (r.get("oracle") or {}).items()]
            scored = [one for one in scored if one[0] == "class"] if class_order else scored
            for order, cut, scores in scored:
                values = [scores[p][k] if scores[p] else "" for p in PROTOCOLS for k in KINDS]
                cost = (r.get("cost") or {}).get("train_cpu", "")
                out.writerow([
                    *known, settings, r["seed"], order, cut, *values, scores["categories"], cost, r["commit"], r["time"]
                ])  # fmt: skip
    return text.getvalue()


def _escaped(text: str) -> str:
    pieces = text.split("`")  # code in backquotes, as in Markdown
    words = ["".join(_LATEX.get(c, c) for c in piece) for piece in pieces]
    return "".join(rf"\texttt{{{word}}}" if i % 2 else word for i, word in enumerate(words))
