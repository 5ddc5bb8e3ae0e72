"""Promises of the tables: means and spreads that can be checked by hand, in three forms, with their origin."""

from __future__ import annotations

import csv
import io

import pytest
from hand_made_results import result

from newfound.benchmarks import tables
from newfound.benchmarks.tables import Table

COLUMNS = (tables.accuracy("strict"), tables.categories(), tables.accuracy("strict", oracle=True), tables.minutes())


def table(**lines) -> Table:
    return Table("a table", COLUMNS, lines)


def test_a_figure_is_the_mean_and_spread_over_seeds_and_orders():
    results = [result([0.5, 0.7], [10, 20]), result([0.6, 0.6], [30, 40], seed=1)]
    # mean of 50 70 60 60 = 60; squares of the differences 100 100 0 0, over 3: sqrt(200 / 3) = 8.16
    assert tables.accuracy("strict").figures(results)[0] == pytest.approx((60, 8.16497))
    assert tables.categories().figures(results[:1])[0] == pytest.approx((15, 7.0710678))
    assert tables.accuracy("strict").figures([result([0.4])])[1] == (pytest.approx(20), None)


def test_the_markdown_has_a_row_a_line_and_says_what_it_is_of():
    text = table(LTC=[result([0.5, 0.7], [10, 20])], other=[result([0.1])]).markdown()
    lines = text.splitlines()
    assert lines[0] == (
        "|  | Strict All / Old / New | categories | Strict, oracle All / Old / New | CPU minutes | preset | seeds |"
    )
    assert lines[2] == "| LTC | 60.0 / 30.0 / 30.0 (± 14.1) | 15 ± 7 | 80.0 / 40.0 / 40.0 | 1.5 | default (short) | 1 |"
    assert lines[3].startswith("| other | 10.0 / 5.0 / 5.0 | 10 |")
    assert "19 known classes of 37, 942 labelled and 2,738 streamed images; backbone tf_efficientnet_lite0" in text
    assert "commit abc, 2026-01-02." in text
    assert "ImageNet" in text, "what the backbone has seen"


def test_lines_that_could_not_be_run_are_told_with_the_reason():
    told = Table("a table", COLUMNS, {"LTC": [result([0.5])]}, {"DiffGRE": "no weights"}, ("A note.",)).caption()
    assert told.endswith("Not run, or not at every seed: DiffGRE (no weights)")
    assert "A note." in told


def test_a_class_seed_draws_known_classes_but_of_data_of_ones_own_the_labelled_images():
    data = result([0.5])["data"] | {"class_seed": 1}
    told = table(LTC=[result([0.5], data=data)]).caption()
    assert "pets, class seed 1's 19 known classes of 37, 942 labelled and" in told
    told = table(LTC=[result([0.5], data=data | {"protocol": "own photos"})]).caption()
    assert "own photos, its 19 known classes of 37, 942 labelled (class seed 1's draw) and" in told


def test_a_reason_that_several_lines_have_is_told_once():
    missing = {"DiffGRE": "no weights", "PHE": "it diverged", "diffusion": "no weights"}
    told = Table("a table", COLUMNS, {"LTC": [result([0.5])]}, missing).caption()
    assert told.endswith("Not run, or not at every seed: DiffGRE; diffusion (no weights); PHE (it diverged)")


def test_the_caption_tells_of_images_that_could_not_be_read():
    assert "cannot be read" not in table(LTC=[result([0.5], unread={"labelled": 0, "stream": 0})]).caption()
    told = table(SMILE=[result([0.5])], LTC=[result([0.5], unread={"labelled": 1, "stream": 1200})]).caption()
    assert "Of the images, 1 labelled and 1,200 streamed ones cannot be read, and are left out." in told


def test_the_caption_of_the_latex_stays_a_comment_whatever_the_reason():
    text = Table("a table", COLUMNS, {"LTC": [result([0.5])]}, {"PHE": "it failed:\nno memory"}).latex()
    (comment,) = text.split("\\end{tabular}\n")[1].splitlines()
    assert comment.startswith("% ")
    assert comment.endswith("PHE (it failed: no memory)")


def test_a_figure_that_a_result_does_not_have_is_a_dash():
    without = result([0.5], oracle=None, creation=None)
    assert tables.accuracy("named", oracle=True).cell([without]) == "- / - / -"
    assert tables.creation_seconds().cell([without]) == "- / -"
    assert tables.creation_seconds().cell([result([0.5])]) == "0.60 / 3.00"


def test_a_stream_of_known_classes_alone_has_a_dash_for_new():
    known_only = result([0.5])
    for scores in (*known_only["scores"], *known_only["oracle"].values()):
        scores["strict"]["new"] = None
    assert tables.accuracy("strict").cell([known_only]) == "50.0 / 25.0 / -"
    assert tables.accuracy("strict", oracle=True).cell([known_only]) == "80.0 / 40.0 / -"
    assert table(LTC=[known_only]).csv().splitlines()[1].split(",")[13:14] == [""], "strict_new"


def test_the_csv_has_a_line_for_each_seed_and_order_and_for_each_oracle():
    text = table(LTC=[result([0.5, 0.7], [10, 20], settings={"a": 1}), result([0.6], seed=1, oracle=None)]).csv()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["seed"], r["order"], r["cut"], r["strict_all"], r["categories"]) for r in rows] == [
        ("0", "0", "0.5", "0.5", "10"), ("0", "1", "0.5", "0.7", "20"), ("0", "class", "0.5", "0.9", "7"),
        ("0", "oracle strict", "0.3", "0.8", "12"), ("0", "oracle named", "0.4", "0.8", "12"),
        ("1", "0", "0.5", "0.6", "10"), ("1", "class", "0.5", "0.9", "7"),
    ]  # fmt: skip
    first = rows[0]
    assert (first["settings"], first["data"], first["backbone"]) == ("a=1", "pets", "tf_efficientnet_lite0")
    assert (first["method"], first["preset"], first["commit"]) == ("ltc", "default (short)", "abc")
    assert first["time"] == "2026-01-02T03:04:05Z"


def test_the_latex_escapes_what_latex_would_not_print_and_has_a_column_a_figure():
    text = table(**{"LTC, `de_fault` 50 % & more": [result([0.5])]}).latex()
    figures = "50.0 & 25.0 & 25.0 & 10 & 80.0 & 40.0 & 40.0 & 1.5"
    assert rf"LTC, \texttt{{de\_fault}} 50 \% \& more & {figures} & default (short) & 1 \\" in text
    odd = table(**{r"a\b^{2}~": [result([0.5])]}).latex()
    assert r"a\textbackslash{}b\textasciicircum{}\{2\}\textasciitilde{} & 50.0" in odd
    spread = table(LTC=[result([0.5, 0.7])]).latex()
    assert r"60.0 {\tiny $\pm$ 14.1}" in spread
    assert text.startswith(r"\begin{tabular}{lrrrrrrrrlr}")
    head, names, row = (line for line in text.splitlines() if line.endswith(r"\\"))
    assert head.count(" & ") + 4 == names.count(" & ") == row.count(" & ") == 10, "a \\multicolumn takes three"
    assert head.count(r"\multicolumn{3}{c}") == 2


@pytest.mark.parametrize(
    ("seeds", "orders", "words"),
    [
        ([0], 1, "seed 0, in one random stream order"),
        ([0, 0, 1], 3, "seeds 0 and 1, each in 3 random stream orders"),
        ([10, 2, 0], 2, "seeds 0, 2 and 10, each in 2 random stream orders"),
    ],
)
def test_a_number_of_orders_cannot_be_taken_for_a_seed(seeds, orders, words):
    assert tables.seeds_in_words(seeds, orders) == words
