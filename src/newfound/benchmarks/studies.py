"""The paper's tables and figures, each as the lines it compares and the way it shows them.

A study says nothing of data, backbone or seeds: those are asked for when it is run (`newfound.benchmarks.running`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from newfound.benchmarks import tables
from newfound.benchmarks.tables import Column
from newfound.errors import SettingsError

Grid = Literal["full", "small"]
DINO, CLIP = "vit_base_patch16_224.dino", "vit_base_patch16_clip_quickgelu_224.openai"


@dataclass(frozen=True)
class Variant:
    """A method with a preset and the settings that differ from it."""

    method: str
    preset: str = "default"
    settings: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Line:
    """What a study compares: a variant under a name, with a backbone or input size of its own if those are compared."""

    name: str
    variant: Variant
    backbone: str | None = None
    image_size: int | None = None


@dataclass(frozen=True)
class Choice:
    """What may be chosen for a study.

    Args:
        preset, settings: what LTC starts from where a study varies it: the paper's account, unless told otherwise.
        grid: every value of an axis, or a few.
        methods: only the lines of these methods; none for all.
        backbones: for the study of backbones.
    """

    preset: str = "paper"
    settings: dict[str, Any] = field(default_factory=dict)
    grid: Grid = "full"
    methods: tuple[str, ...] = ()
    backbones: tuple[str, ...] = ()

    def ltc(self, **changes: Any) -> Variant:
        return Variant("ltc", self.preset, self.settings | changes)


@dataclass(frozen=True)
class Study:
    """A table or figure of the paper.

    Args:
        kind: "table" (lines and columns), "curves" (drawn from results) or "picture" (drawn from a trained run).
        varies: whether the lines follow the choice of preset and settings.
        axes: the settings that the study itself sets.
    """

    name: str
    title: str
    about: str
    kind: Literal["table", "curves", "picture"]
    make: Callable[[Choice], list[Line]]
    columns: tuple[Column, ...] = ()
    varies: bool = False
    axes: tuple[str, ...] = ()

    def lines(self, choice: Choice) -> list[Line]:
        """Raises SettingsError if no line has one of the methods asked for, or a setting is the study's own."""
        taken = [name for name in choice.settings if name in self.axes]
        if taken:
            raise SettingsError(f"{self.name} sets {', '.join(taken)} itself.")
        lines = self.make(choice)
        unknown = set(choice.methods) - {line.variant.method for line in lines}
        if unknown:
            names = dict.fromkeys(line.variant.method for line in lines)
            raise SettingsError(
                f"{self.name} has no line with the method {', '.join(sorted(unknown))}; it has {', '.join(names)}."
            )
        return [line for line in lines if not choice.methods or line.variant.method in choice.methods]


COSINES = {"dictionary": "prototypes"}  # the dictionary of the paper, where a preset has another


def _table1(choice: Choice) -> list[Line]:
    from newfound.method import methods  # here: commands show their help without PyTorch

    mixup = {"creator": "mixup"}
    lines = [
        Line("closed set (control)", Variant("closed")),
        Line("frozen backbone (control), cosines", Variant("frozen", settings=COSINES)),
        Line("frozen backbone (control), evidence", Variant("frozen")),
        Line("SLC", Variant("slc")),
        Line("MLDG", Variant("mldg", settings=COSINES)),
        Line("RankStat", Variant("rankstat")),
        Line("WTA", Variant("wta")),
        Line("SMILE", Variant("smile")),
        Line("PHE", Variant("phe")),
        Line("DiffGRE on SMILE", Variant("diffgre-smile")),
        Line("DiffGRE on PHE", Variant("diffgre-phe")),
        Line("DiffGRE on SMILE, mixup for diffusion", Variant("diffgre-smile", settings=mixup)),
        Line("DiffGRE on PHE, mixup for diffusion", Variant("diffgre-phe", settings=mixup)),
        Line("LTC baseline (Eq. 3)", Variant("baseline", settings=COSINES)),
        *_ltc_presets(),
    ]
    there = {line.variant.method for line in lines} | {"known-hinge"}  # an ablation, which is in Table 3
    return lines + [Line(name, Variant(name)) for name in methods() if name not in there]  # somebody's own


def _ltc_presets() -> list[Line]:
    return [
        Line("LTC, `paper`", Variant("ltc", "paper")),
        Line("LTC, `released`", Variant("ltc", "released")),
        Line("LTC, `default` with cosines", Variant("ltc", settings=COSINES)),
        Line("LTC, `default`", Variant("ltc")),
    ]


def _table2(choice: Choice) -> list[Line]:
    lengths = (12, 16, 32, 64) if choice.grid == "full" else (16, 32)
    codes = [
        Line(f"{method.upper()}, {bits} bits", Variant(method, settings={"bits": bits}))
        for method in ("smile", "phe")
        for bits in lengths
    ]
    return codes + _ltc_presets()


def _table3(choice: Choice) -> list[Line]:
    return [
        Line("without cross-entropy", choice.ltc(ce=0.0)),
        Line("without contrastive loss", choice.ltc(alpha=0.0)),
        Line("without max-margin loss", choice.ltc(gamma_mm=0.0)),
        # What the paper calls "w/o MKEE" and describes as keeping only the known-class term of Eq. 10.
        Line("without creation: hinge on known samples only", choice.ltc(creator=None)),
        Line("LTC", choice.ltc()),
    ]


def _table4(choice: Choice) -> list[Line]:
    return [
        Line("nothing created", choice.ltc(creator=None)),
        Line("mixup", choice.ltc(creator="mixup")),
        Line("CutMix", choice.ltc(creator="cutmix")),
        # A diffusion model needs images, so this line alone learns from fresh views in pixel space.
        Line("diffusion (DiffGRE)", choice.ltc(creator="diffusion", space="pixels", cached=False)),
        Line("MKEE without entropy", choice.ltc(creator="mkee-no-entropy")),
        Line("MKEE without density", choice.ltc(creator="mkee-no-density")),
        Line("MKEE", choice.ltc()),
        # The paper's step is 0.05 long, next to nothing beside tokens whose norm is in the hundreds.
        Line("MKEE, step relative to the norm", choice.ltc(relative_step=True)),
    ]


def _creation(choice: Choice) -> list[Line]:
    compared: tuple[tuple[str, dict[str, Any]], ...] = (
        ("no margin, nothing created", {"creator": None, "gamma_mm": 0.0}),
        ("nothing created", {"creator": None}),
        ("mixup", {"creator": "mixup"}),
        ("MKEE", {}),
        ("drawn from B", {"creator": "between"}),
        ("MKEE, margin in the evidence", {"margin": "evidence"}),
        ("drawn from B, margin in the evidence", {"creator": "between", "margin": "evidence"}),
    )
    return [Line(name, Variant("ltc", settings=settings)) for name, settings in compared]


def _backbones(choice: Choice) -> list[Line]:
    from newfound.backbone import DEFAULT  # here: commands show their help without PyTorch

    compared = [("SMILE", Variant("smile")), ("PHE", Variant("phe")), ("LTC, `paper`", Variant("ltc", "paper"))]
    compared.append(("LTC, `default`", Variant("ltc")))
    names = choice.backbones or (DINO, CLIP, DEFAULT)
    return [Line(f"{name}, {backbone}", variant, backbone) for name, variant in compared for backbone in names]


def _sizes(choice: Choice) -> list[Line]:
    compared = [("frozen backbone, evidence", Variant("frozen")), ("LTC, `default`", Variant("ltc"))]
    return [
        Line(f"{name}, {size} pixels", variant, image_size=size) for name, variant in compared for size in (224, 320)
    ]


def _points(choice: Choice, settings: Sequence[dict[str, float]]) -> list[Line]:
    """A line for each point of a figure, each point once."""
    named = {", ".join(f"{name} {value:g}" for name, value in point.items()): point for point in settings}
    return [Line(name, choice.ltc(**point)) for name, point in named.items()]


def _sensitivity(choice: Choice) -> list[Line]:
    full = choice.grid == "full"
    alphas = [round(0.1 * i, 1) for i in range(11)] if full else [0.1, 0.3, 0.7, 1.0]
    gammas = [0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 0.7, 1.0] if full else [0.01, 0.05, 0.1, 0.5, 1.0]
    across = [{"alpha": alpha, "gamma_mm": gamma} for gamma in (0.05, 0.5) for alpha in alphas]
    return _points(choice, across + [{"alpha": alpha, "gamma_mm": gamma} for alpha in (0.3, 0.7) for gamma in gammas])


def _threshold(choice: Choice) -> list[Line]:
    starts = [round(0.05 * i, 2) for i in range(21)] if choice.grid == "full" else [0.0, 0.25, 0.5, 0.75, 1.0]
    # Whatever the preset: a rehearsed threshold would pass over both.
    adaptive = replace(choice, settings=choice.settings | {"threshold": "adaptive"})
    return _points(adaptive, [{"tau_init": tau, "beta": beta} for tau in starts for beta in (0.0, 0.001, 0.01)])


def _one_run(choice: Choice) -> list[Line]:
    return [Line("LTC", choice.ltc())]


_strict, _greedy, _named = (tables.accuracy(protocol) for protocol in tables.PROTOCOLS)
_oracles = (tables.accuracy("strict", oracle=True), tables.accuracy("named", oracle=True))
_count, _minutes = tables.categories(), tables.minutes()

STUDIES = {
    study.name: study
    for study in (
        Study(
            "table1", "Table 1", "every method under Strict, Greedy and Named", "table",
            _table1, (_strict, _greedy, _named, _count, *_oracles, _minutes),
        ),
        Study(
            "table2", "Table 2", "how many categories are found, and code lengths of SMILE and PHE", "table",
            _table2, (_count, _strict, _greedy, _named, _minutes),
        ),
        Study(
            "table3", "Table 3", "LTC without each of its parts", "table",
            _table3, (_greedy, _strict, _named, _count, *_oracles), varies=True, axes=("ce",),
        ),
        Study(
            "table4", "Table 4", "LTC with other creators, and the time to create 128 samples", "table",
            _table4, (_greedy, _strict, _named, _count, *_oracles, tables.creation_seconds()), varies=True,
            axes=("creator", "relative_step"),
        ),
        Study(
            "creation", "Creation under evidence", "LTC's creators and margins where evidence decides", "table",
            _creation, (_strict, _greedy, _named, _count, *_oracles, _minutes),
        ),
        Study(
            "backbones", "Backbones", "SMILE, PHE and LTC on several backbones (the appendix's variants)", "table",
            _backbones, (_greedy, _strict, _named, _count, *_oracles),
        ),
        Study(
            "sizes", "Input sizes", "how large images are shown to the backbone", "table",
            _sizes, (_strict, _greedy, _named, _count, *_oracles, _minutes),
        ),
        Study(
            "ltc", "Settings", "LTC alone, to choose its preset and settings on another draw of the known classes",
            "table", _one_run, (_strict, _greedy, _named, _count, *_oracles, _minutes), varies=True,
        ),
        Study(
            "sensitivity", "Sensitivity", "accuracy against alpha and gamma_mm", "curves", _sensitivity, varies=True,
            axes=("alpha", "gamma_mm"),
        ),
        Study(
            "threshold", "Threshold", "tau_init against beta: the adaptive threshold and fixed ones", "curves",
            _threshold, varies=True, axes=("tau_init", "beta", "threshold"),
        ),
        Study(
            "perturbation", "Perturbation", "where MKEE moves mixed samples", "picture", _one_run, varies=True,
        ),
        Study(
            "tsne", "t-SNE", "known classes and pseudo-novel samples", "picture", _one_run, varies=True,
        ),
    )
}  # fmt: skip
