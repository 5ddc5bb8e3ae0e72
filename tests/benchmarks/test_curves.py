"""Curves show means over seeds and stream orders of results that belong together, and nothing that was not measured."""

from __future__ import annotations

import pytest

from newfound import presets
from newfound.benchmarks import curves
from newfound.benchmarks.figure_style import save
from newfound.benchmarks.pretraining import in_words
from newfound.errors import DataError

pytest.importorskip("matplotlib", reason="newfound[bench] is not installed")


def result(
    *accuracies: float,
    seed: int = 0,
    method: str = "ltc",
    preset: str = "paper (short)",
    final: float = 0.7,
    **settings,
) -> dict:
    """A result with a stream order for each accuracy, Strict All; Old is 0.1 above it, New 0.1 below, Greedy twice.

    Its training ended with the cut `final`.
    """

    def three(value: float) -> dict:
        return {"all": value, "old": value + 0.1, "new": value - 0.1}

    return {
        "data": {"protocol": "pets", "class_seed": None, "known": 19, "classes": 37},
        "backbone": "tf_efficientnet_lite0.in1k", "weights": "pretrained", "threshold": {"value": final},
        "method": method, "preset": preset, "settings": settings, "seed": seed, "orders": len(accuracies),
        "scores": [{"strict": three(value), "greedy": three(2 * value)} for value in accuracies], "commit": "abc",
        "time": "2026-01-02T03:04:05Z",
    }  # fmt: skip


def picked(rows: list[dict], **wanted) -> list[dict]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def lines(figure) -> list[list[tuple[float, float]]]:
    """The points of every line that was drawn, panel by panel."""
    return [
        [(float(x), float(y)) for x, y in container.lines[0].get_xydata()]
        for ax in figure.axes
        for container in ax.containers
    ]


def test_a_point_is_the_mean_over_seeds_and_orders_and_its_bar_their_standard_deviation():
    results = [result(0.10, 0.20, seed=0, alpha=0.7), result(0.30, 0.40, seed=1, alpha=0.7)]
    (row,) = picked(curves.sensitivity(results).rows, held="gamma_mm=0.05", kind="all")
    # Greedy is 20, 40, 60, 80 %: mean 50; deviations -30, -10, 10, 30 squared sum to 2000; sqrt(2000 / 3) = 25.82
    assert (row["varied"], row["value"], row["protocol"], row["streams"]) == ("alpha", 0.7, "greedy", 4)
    assert row["accuracy"] == pytest.approx(50)
    assert row["spread"] == pytest.approx(25.8199, abs=1e-4)


def test_a_single_stream_has_no_spread():
    (row,) = picked(curves.sensitivity([result(0.3, alpha=0.7)], "strict").rows, held="gamma_mm=0.05", kind="new")
    assert row["accuracy"] == pytest.approx(20)
    assert row["spread"] is None


def test_a_stream_of_known_classes_alone_has_no_line_for_new():
    known_only = result(0.3, alpha=0.7)
    known_only["scores"][0]["greedy"]["new"] = None
    drawing = curves.sensitivity([known_only])
    assert {row["kind"] for row in drawing.rows} == {"all", "old"}


def test_a_setting_that_a_result_does_not_name_has_its_presets_value():
    # The preset "paper" has alpha 0.3 and gamma_mm 0.05, so the first result lies in a panel of each.
    drawing = curves.sensitivity([result(0.1), result(0.2, alpha=0.7), result(0.3, alpha=0.7, gamma_mm=0.5)], "strict")
    shown = {
        held: [(row["value"], round(row["accuracy"])) for row in picked(drawing.rows, held=held, kind="all")]
        for held in ("gamma_mm=0.05", "gamma_mm=0.5", "alpha=0.3", "alpha=0.7")
    }
    assert shown == {
        "gamma_mm=0.05": [(0.3, 10), (0.7, 20)],
        "gamma_mm=0.5": [(0.7, 30)],
        "alpha=0.3": [(0.05, 10)],
        "alpha=0.7": [(0.05, 20), (0.5, 30)],
    }


@pytest.mark.parametrize("preset", presets.PRESETS)
@pytest.mark.parametrize("short", [True, False])
def test_results_of_every_preset_can_be_read(preset, short):
    label = presets.label(preset, short=short)
    own = presets.resolve("ltc", preset, short=short, overrides={})
    (row,) = curves.threshold_curves([result(0.5, preset=label)]).rows[:1]
    assert (row["tau_init"], row["beta"]) == (own.tau_init, own.beta)


def test_what_is_drawn_is_what_the_rows_say():
    results = [result(0.1 * i, 0.1 * i, tau_init=tau, beta=beta) for i, tau, beta in GRID]
    drawing = curves.threshold_curves(results)
    wanted = [
        [(row["tau_init"], row["accuracy"]) for row in picked(drawing.rows, protocol=protocol, beta=beta)]
        for protocol in ("strict", "greedy")
        for beta in (0.0, 0.001, 0.01)
    ]
    assert lines(drawing.figure) == wanted
    assert [len(line) for line in wanted] == [2, 1, 2] * 2  # nothing stands for the point that is missing


GRID = [(1, 0.0, 0.0), (2, 0.5, 0.0), (3, 0.5, 0.001), (4, 0.0, 0.01), (3, 0.5, 0.01)]


def test_the_fixed_threshold_is_marked_as_such():
    figure = curves.threshold_curves([result(0.1 * i, tau_init=tau, beta=beta) for i, tau, beta in GRID]).figure
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names[0].startswith("fixed")
    assert all(name.startswith("adaptive") for name in names[1:])
    markers = [container.lines[0].get_marker() for container in figure.axes[0].containers]
    assert len(set(markers)) == 3


def test_the_adaptive_threshold_stands_beside_the_fixed_one_alone():
    results = [result(0.1 * i, tau_init=tau, beta=beta) for i, tau, beta in GRID]
    rows = curves.adaptive_against_fixed(results, beta=0.01).rows
    strict = {(row["beta"], row["tau_init"]): round(row["accuracy"]) for row in picked(rows, protocol="strict")}
    assert strict == {(0.0, 0.0): 10, (0.0, 0.5): 20, (0.01, 0.0): 40, (0.01, 0.5): 30}
    assert {round(row["accuracy"]) for row in picked(rows, protocol="greedy")} == {20, 40, 80, 60}


def test_unless_told_otherwise_the_adaptive_threshold_is_the_papers():
    drawing = curves.adaptive_against_fixed([result(0.1 * i, tau_init=tau, beta=beta) for i, tau, beta in GRID])
    assert {row["beta"] for row in drawing.rows} == {0.0, 0.001}
    assert "(beta 0.001, the paper's)" in drawing.caption


@pytest.mark.parametrize("draw", [curves.threshold_curves, curves.adaptive_gain])
def test_figures_of_thresholds_tell_where_they_ended_and_how_far_that_is_from_the_start(draw):
    fixed = [result(0.5, seed=seed, tau_init=0.7, beta=0.0) for seed in (0, 1)]
    ends = [(0, 0.001, 0.708), (1, 0.001, 0.7), (0, 0.01, 0.65), (1, 0.01, 0.77)]
    adaptive = [result(0.5, seed=seed, tau_init=0.7, beta=beta, final=final) for seed, beta, final in ends]
    drawing = draw(fixed + adaptive)
    means = {row["beta"]: row["final_tau"] for row in drawing.rows if row["beta"]}
    assert means == pytest.approx({0.001: 0.704, 0.01: 0.71})  # (0.708 + 0.7) / 2 and (0.65 + 0.77) / 2
    # |0.008| and 0 make 0.004; |-0.05| and |0.07| make 0.06
    assert "the threshold moved by 0.004 with beta 0.001, 0.06 with beta 0.01, on average." in drawing.caption


def test_a_fixed_threshold_is_not_said_to_have_moved():
    drawing = curves.threshold_curves([result(0.5, tau_init=0.7, beta=0.0)])
    assert "moved" not in drawing.caption
    assert drawing.rows[0]["final_tau"] == 0.7


def test_a_gain_is_the_mean_difference_of_streams_alike_in_seed_and_order():
    results = [
        result(0.10, 0.20, seed=0, tau_init=0.5, beta=0.0),
        result(0.15, 0.28, seed=0, tau_init=0.5, beta=0.01),
        result(0.90, 0.90, seed=1, tau_init=0.5, beta=0.01),  # has no fixed one to compare with
        result(0.90, 0.90, seed=0, tau_init=0.6, beta=0.01),  # nor has this
    ]
    drawing = curves.adaptive_gain(results)
    (strict,), (greedy,) = (picked(drawing.rows, protocol=protocol) for protocol in ("strict", "greedy"))
    # Strict gains 5 and 8 points: mean 6.5, standard deviation sqrt((1.5² + 1.5²) / 1) = 2.1213; Greedy twice that
    assert (strict["tau_init"], strict["beta"], strict["streams"]) == (0.5, 0.01, 2)
    assert strict["gain"] == pytest.approx(6.5)
    assert strict["spread"] == pytest.approx(2.1213, abs=1e-4)
    assert greedy["gain"] == pytest.approx(13)
    bars = [bar.get_height() for ax in drawing.figure.axes for bar in ax.patches]
    assert bars == pytest.approx([6.5, 13])


def test_bars_of_two_betas_stand_side_by_side_around_their_tau_init():
    settings = [(tau, beta) for tau in (0.5, 0.6) for beta in (0.0, 0.001, 0.01)]
    drawing = curves.adaptive_gain([result(0.1 + beta, tau_init=tau, beta=beta) for tau, beta in settings])
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in drawing.figure.axes[0].patches)
    # tau_init lies 0.1 apart: two bars of 0.4 * 0.1 each, the one left and the other right of it
    assert [edge for span in spans for edge in span] == pytest.approx([0.46, 0.5, 0.5, 0.54, 0.56, 0.6, 0.6, 0.64])


@pytest.mark.parametrize(
    ("draw", "results", "missing"),
    [
        (curves.sensitivity, [], "gamma_mm 0.05 or 0.5.*none at all"),
        (curves.sensitivity, [result(0.5, alpha=0.9, gamma_mm=0.9)], r"alpha 0\.3 or 0\.7.*alpha 0\.9 gamma_mm 0\.9"),
        (curves.threshold_curves, [], "tau_init and beta.*none at all"),
        (curves.adaptive_against_fixed, [result(0.5, beta=0.0)], r"beta 0\.001 is missing.*tau_init 0\.7 beta 0\."),
        (curves.adaptive_against_fixed, [result(0.5)], r"beta 0 is missing.*tau_init 0\.7 beta 0\.001"),
        (curves.adaptive_gain, [result(0.5, beta=0.01)], "beta 0 and another beta at the same tau_init"),
        (curves.adaptive_gain, [result(0.5, beta=0.0)], "beta 0 and another beta at the same tau_init"),
    ],
)
def test_a_figure_without_a_point_is_an_error_that_says_what_is_missing(draw, results, missing):
    with pytest.raises(DataError, match=missing):
        draw(results)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (result(0.5, alpha=0.7, creator="mixup"), r"creator \(mixup or mkee\)"),
        (result(0.5, alpha=0.7) | {"backbone": "c"}, r"backbone \(c or tf_efficientnet_lite0.in1k\)"),
        (result(0.5, alpha=0.7) | {"data": {"protocol": "cub"}}, "data .*cub"),
        (result(0.5, 0.5, alpha=0.7), r"orders \(1 or 2\)"),
        (result(0.5, method="baseline"), "baseline has no gamma_mm"),
        (result(0.5, preset="best"), "'best'"),
    ],
)
def test_results_that_differ_in_more_than_the_figure_shows_are_refused(other, named):
    with pytest.raises(DataError, match=named):
        curves.sensitivity([result(0.5), other])


def test_a_panel_without_results_says_so():
    figure = curves.sensitivity([result(0.5)]).figure
    assert [[text.get_text() for text in ax.texts] for ax in figure.axes] == [[], ["no results"], [], ["no results"]]


def test_the_same_results_give_the_same_svg(tmp_path):
    results = [result(0.1 * i, 0.2, tau_init=tau, beta=beta) for i, tau, beta in GRID]
    first, second = (save(curves.adaptive_gain(results).figure, tmp_path / name)[1] for name in "ab")
    assert first.read_bytes() == second.read_bytes()


def test_a_caption_says_what_was_measured_but_not_what_varies():
    caption = curves.sensitivity([result(0.5, alpha=0.7, lr=1e-4), result(0.5, alpha=0.1, lr=1e-4, seed=2)]).caption
    for part in ("pets, 19 known classes of 37;", "ltc, paper (short), lr=0.0001;", "commit abc, 2026-01-02."):
        assert part in caption
    assert "seeds 0 and 2, each in one random stream order" in caption


def test_a_caption_says_from_when_to_when_and_which_classes_were_drawn():
    drawn = {"data": result(0.5)["data"] | {"class_seed": 2}}
    first, last = (result(0.5, alpha=alpha) | drawn for alpha in (0.3, 0.7))
    caption = curves.sensitivity([last | {"time": "2026-03-04T00:00:00Z"}, first]).caption
    assert "37 (class seed 2);" in caption
    assert "2026-01-02 to 2026-03-04." in caption


def test_a_caption_says_what_the_backbone_had_seen():
    assert curves.sensitivity([result(0.5)]).caption.endswith(in_words("tf_efficientnet_lite0.in1k", "pets"))
    random = curves.sensitivity([result(0.5) | {"weights": "random"}]).caption
    assert random.endswith("its weights are random.")
