"""Promises of tables on the page: every figure under its heading, and the best of them marked with care."""

from __future__ import annotations

from hand_made_results import result
from html_page import Page
from hypothesis import given, settings
from hypothesis import strategies as st
from result_pages import record

from newfound.benchmarks import tables
from newfound.benchmarks.page import render
from newfound.benchmarks.page_tables import table_markup
from newfound.benchmarks.studies import STUDIES
from newfound.benchmarks.tables import Table

shares = st.lists(st.floats(0, 1), min_size=2, max_size=2)  # Strict All in two stream orders


def test_a_cell_has_the_mean_and_the_spread_of_its_figure(tmp_path):
    lines = {"LTC": [result([0.5, 0.7], [10, 20]), result([0.6, 0.6], [30, 40], seed=1)], "other": [result([0.1])]}
    cells = Page(render(record(tmp_path, lines))).row("LTC")
    # Strict All: mean of 50 70 60 60 = 60, spread sqrt(200 / 3) = 8.16; Old and New are half of that
    assert [cell["text"] for cell in cells[:3]] == ["60.0± 8.2", "30.0± 4.1", "30.0± 4.1"]
    assert cells[9]["text"] == "25± 13"  # categories: 10 20 30 40, spread sqrt(500 / 3) = 12.9
    assert cells[10]["text"] == "80.0± 0.0"
    assert [cell["text"] for cell in cells[-2:]] == ["1.5", "2"]  # CPU minutes have no spread; two seeds


def test_a_single_stream_has_no_spread(tmp_path):
    assert Page(render(record(tmp_path, {"LTC": [result([0.4])]}))).row("LTC")[0]["text"] == "40.0"


@settings(max_examples=25)
@given(st.sampled_from(["table1", "table2", "table3", "table4"]), st.lists(shares, min_size=1, max_size=4))
def test_every_number_of_a_table_is_on_the_page(study, values):
    lines = {f"line {i}": [result(pair, [i, 3 * i])] for i, pair in enumerate(values)}
    table = Table("a table", STUDIES[study].columns, lines)
    page = Page(table_markup(table))
    for name, results in lines.items():
        wanted = [text for column in table.columns for text in column.texts(results)]
        main = [next(e for e in page.elements if e["parents"][-1:] == [cell])["text"] for cell in page.row(name)[:-1]]
        assert main == wanted


def test_figures_stand_under_their_protocol(tmp_path):
    page = Page(render(record(tmp_path, {"LTC": [result([0.4, 0.5])]})))
    head = page.all("thead")[0]
    groups = [(th["text"], th["colspan"]) for th in page.all("th", inside=head) if "colspan" in th]
    oracle = "oracle: cut chosen on the scored stream"
    assert groups == [
        ("Strict", "3"), ("Greedy", "3"), ("Named", "3"), (f"Strict {oracle}", "3"), (f"Named {oracle}", "3"),
    ]  # fmt: skip
    assert [th["text"] for th in page.all("th", inside=page.all("tr", inside=head)[1])] == ["All", "Old", "New"] * 5


def test_the_best_of_a_column_is_bold_and_never_a_control_or_an_oracle(tmp_path):
    top = {"all": 0.95, "old": 0.95, "new": 0.95}  # the others' oracles are lower
    oracle = {"strict": {"strict": top}, "named": {"named": top}}
    lines = {
        "closed": [result([0.99], [37], method="closed", cost={"train_cpu": 1.0})],
        "frozen": [result([0.98], [37], method="frozen", cost={"train_cpu": 1.0})],
        "near": [result([0.5], [35], cost={"train_cpu": 300.0})],  # two categories from the 37 classes
        "high": [result([0.6], [60], cost={"train_cpu": 120.0}, oracle=oracle)],
    }
    page = Page(render(record(tmp_path, lines)))
    bold = {name: [page.all("b", inside=cell) != [] for cell in page.row(name)] for name in lines}
    assert not any(bold["closed"] + bold["frozen"])
    accuracies, count, oracles, minutes = slice(0, 9), 9, slice(10, 16), 16
    assert all(bold["high"][accuracies])
    assert not any(bold["near"][accuracies])
    assert (bold["near"][count], bold["high"][count]) == (True, False)
    assert (bold["near"][minutes], bold["high"][minutes]) == (False, True)
    assert not any(bold["near"][oracles] + bold["high"][oracles])
    assert all("oracle" in cell["class"] for cell in page.row("near")[oracles])


def test_lines_that_look_the_same_are_both_the_best_unless_all_do():
    def bold(*values: float) -> int:
        lines = {f"line {i}": [result([value])] for i, value in enumerate(values)}
        return len(Page(table_markup(Table("a table", STUDIES["table1"].columns[:1], lines))).all("b"))

    assert bold(0.5, 0.50001, 0.4) == 6  # both of the first two, in All, Old and New
    assert bold(0.5, 0.50001) == bold(0.5) == 0


def test_counts_as_far_above_the_classes_as_below_are_equally_good():
    lines = {str(count): [result([0.5], [count])] for count in (35, 39, 40)}  # of 37 classes
    page = Page(table_markup(Table("a table", (tables.categories(),), lines)))
    assert [b["text"] for b in page.all("b")] == ["35", "39"]
