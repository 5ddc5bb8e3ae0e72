"""Promises of running a study: what was measured is kept, shared and shown again without data or training."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shutil
from pathlib import Path

import pytest

from newfound.benchmarks import cells, running, studies
from newfound.benchmarks.cells import Setup
from newfound.benchmarks.running import folder_of, records, run_study
from newfound.benchmarks.store import Store
from newfound.benchmarks.studies import STUDIES, Choice, Line, Study, Variant
from newfound.errors import DataError, SettingsError, WeightsError
from newfound.progress import Reporter

pytestmark = pytest.mark.usefixtures("one_thread")
QUICK = {"epochs": 1, "batch_size": 16, "views": 2}


@pytest.fixture
def two_lines(monkeypatch) -> Study:
    """A table of a method that learns and one that does not, both quick."""

    def lines(choice: Choice) -> list[Line]:
        return [Line("first", Variant("frozen")), Line("second", Variant("rankstat", settings=QUICK))]

    study = dataclasses.replace(STUDIES["table1"], make=lines)
    monkeypatch.setitem(studies.STUDIES, "table1", study)
    return study


def test_a_table_is_written_in_three_forms_with_a_record(bench, two_lines, tmp_path):
    record, results = run_study(two_lines, bench, tmp_path, seeds=[1, 0])
    assert {name: [r["seed"] for r in found] for name, found in results.items()} == {"first": [0, 1], "second": [0, 1]}
    folder = folder_of(two_lines, Choice(), bench, tmp_path)
    assert folder.name == "cifar10-test_efficientnet-short-test_efficientnet-2-orders"
    assert record.files == ["table1.md", "table1.csv", "table1.tex"]
    assert (folder / "table1.md").read_text() == record.table(Store(tmp_path).results()).markdown()
    assert sorted(p.name for p in folder.iterdir()) == ["table1.csv", "table1.json", "table1.md", "table1.tex"]
    assert str(tmp_path) not in (folder / "table1.json").read_text()


def test_what_was_measured_is_shown_again_from_the_store_alone(bench, two_lines, tmp_path, monkeypatch):
    record, results = run_study(two_lines, bench, tmp_path, seeds=[0])
    monkeypatch.setattr(Setup, "split", property(lambda self: pytest.fail("the data was asked for")))
    ((path, again),) = records(tmp_path)
    assert path.name == "table1.json"
    assert again == record
    assert again.results(Store(tmp_path).results()) == results


def test_studies_share_their_trainings_and_a_second_call_trains_nothing(bench, two_lines, tmp_path, monkeypatch):
    run_study(two_lines, bench, tmp_path, seeds=[0])
    monkeypatch.setattr(cells, "fit", lambda *a, **k: pytest.fail("trained again"))
    other = dataclasses.replace(two_lines, name="table2", make=lambda choice: [Line("again", Variant("frozen"))])
    _, results = run_study(other, bench, tmp_path, seeds=[0])
    assert list(results) == ["again"]
    assert len(Store(tmp_path).results()) == 2


def test_a_pipeline_that_no_line_has_a_use_for_is_refused(bench, tmp_path):
    with pytest.raises(SettingsError, match="pipeline=models/sd: nothing here is created by diffusion"):
        run_study(STUDIES["table2"], dataclasses.replace(bench, pipeline="models/sd"), tmp_path)


def test_what_is_asked_differently_is_kept_in_another_place(bench):
    varied, plain = STUDIES["table3"], STUDIES["table1"]
    asked = [
        (plain, Choice(), bench),
        (plain, Choice(methods=("ltc",)), bench),
        (varied, Choice(settings={"lr": 0.1}), bench),
        (varied, Choice(preset="released"), bench),
        (plain, Choice(), dataclasses.replace(bench, class_seed=1)),
        (plain, Choice(), dataclasses.replace(bench, orders=5)),
        (plain, Choice(), dataclasses.replace(bench, short=False)),
        (plain, Choice(), dataclasses.replace(bench, weights="random")),
        (plain, Choice(), dataclasses.replace(bench, pipeline="models/sd")),
        (plain, Choice(), dataclasses.replace(bench, backbone="test_vit")),
        (plain, Choice(), dataclasses.replace(bench, protocol="own", known="birds.txt")),
        (plain, Choice(), dataclasses.replace(bench, protocol="own", known="splits/herons.txt")),
    ]
    places = [folder_of(*one, "out") for one in asked]
    assert len(set(places)) == len(places)
    assert all(place.parent == Path("out") for place in places)


def test_the_papers_start_of_the_threshold_is_that_of_its_data_set(bench, write_folder, tmp_path):
    line = Line("LTC", Variant("ltc", "paper"))
    assert running._cell(line, 0, bench).settings == {}
    cub = Setup("cub", bench.data, bench.backbone)
    assert running._cell(line, 0, cub).settings == {"tau_init": 0.6}
    assert running._cell(Line("LTC", Variant("ltc", "paper", {"tau_init": 0.3})), 0, cub).settings == {"tau_init": 0.3}
    assert running._cell(Line("LTC", Variant("ltc", "released")), 0, cub).settings == {}


def test_a_line_that_cannot_be_trained_is_left_out_and_told(bench, two_lines, tmp_path, monkeypatch):
    real = cells.fit

    def fit(data, *, method, **options):
        if method == "rankstat":
            raise WeightsError("no weights here")
        return real(data, method=method, **options)

    monkeypatch.setattr(cells, "fit", fit)
    record, results = run_study(two_lines, bench, tmp_path, seeds=[0, 1])
    assert list(results) == ["first"]
    assert record.missing == {"second": "no weights here"}
    told = (folder_of(two_lines, Choice(), bench, tmp_path) / "table1.md").read_text()
    assert "Not run, or not at every seed: second (no weights here)" in told


def test_what_is_there_can_be_shown_without_measuring_the_rest(bench, two_lines, tmp_path, monkeypatch):
    run_study(dataclasses.replace(two_lines, make=lambda c: two_lines.make(c)[:1]), bench, tmp_path, seeds=[0])
    monkeypatch.setattr(cells, "fit", lambda *a, **k: pytest.fail("trained"))
    record, results = run_study(two_lines, bench, tmp_path, seeds=[0, 1], measure=False)
    assert {name: len(found) for name, found in results.items()} == {"first": 1}
    assert record.missing == {"first": "not measured yet", "second": "not measured yet"}
    with pytest.raises(DataError, match="no run for tsne is kept"):
        run_study(STUDIES["tsne"], bench, tmp_path, measure=False)


def test_a_table_in_class_order_shows_the_scores_of_that_order(bench, two_lines, tmp_path):
    record, results = run_study(two_lines, bench, tmp_path, seeds=[0])
    shown = record.table(Store(tmp_path).results(), class_order=True)
    expected = results["first"][0]["class_order"]["strict"]["all"]
    assert shown.columns[0].figures(shown.lines["first"])[0] == (pytest.approx(100 * expected), None)
    assert "class order" in shown.caption()
    rows = list(csv.DictReader(io.StringIO(shown.csv())))
    assert [(row["order"], float(row["strict_all"])) for row in rows[:1]] == [("class", expected)]
    assert {row["order"] for row in rows} == {"class"}, "no other order, and none under another's name"


def test_a_line_that_was_never_scored_in_class_order_is_told(bench, two_lines, tmp_path):
    record, results = run_study(two_lines, bench, tmp_path, seeds=[0])
    stored = Store(tmp_path).results()
    (older,) = results["second"]
    del stored[older["key"]]["class_order"]
    shown = record.table(stored, class_order=True)
    assert list(shown.lines) == ["first"]
    assert "Not run, or not at every seed: second (measured by an earlier newfound" in shown.caption()


def test_curves_are_drawn_with_their_numbers(bench, tmp_path):
    quick = Choice(settings=QUICK | {"lr": 1e-4, "creation_from_epoch": 0, "p_gen": 1.0}, grid="small")
    study = STUDIES["threshold"]
    few = dataclasses.replace(study, make=lambda choice: study.make(choice)[:3])  # tau_init 0
    record, _ = run_study(few, bench, tmp_path, seeds=[0], choice=quick)
    folder = folder_of(few, quick, bench, tmp_path)
    assert set(record.figures) == {"threshold", "threshold-adaptive", "threshold-gain"}
    assert all((folder / name).stat().st_size > 100 for name in record.files)
    assert len(record.files) == 9


def test_a_picture_keeps_its_run_and_says_what_it_is_of(bench, tmp_path):
    quick = Choice(settings=QUICK | {"lr": 1e-4})
    record, _ = run_study(STUDIES["tsne"], bench, tmp_path, seeds=[0], choice=quick)
    assert record.files == ["tsne.png", "tsne.svg", "tsne.csv"]
    assert "test_efficientnet; ltc, paper (short), batch_size=16, epochs=1, lr=0.0001, views=2, seed 0" in (
        record.figures["tsne"]
    )
    assert len(list((tmp_path / "runs").iterdir())) == 1
    assert [r for _, r in records(tmp_path)] == [record]


def test_a_column_without_a_single_figure_is_left_out(bench, two_lines, tmp_path):
    record, _ = run_study(two_lines, bench, tmp_path, seeds=[0])
    stored = Store(tmp_path).results()
    assert any(column.oracle for column in record.table(stored).columns)
    older = {key: result | {"oracle": None, "cost": None} for key, result in stored.items()}
    assert [column.title for column in record.table(older).columns] == ["Strict", "Greedy", "Named", "categories"]


def test_data_of_ones_own_is_split_by_a_file_of_known_classes(bench, two_lines, tmp_path):
    known = tmp_path / "known.txt"
    known.write_text("kind0\nkind2\nkind7\n")
    own = Setup("own", bench.data, bench.backbone, orders=1, weights=bench.weights, known=str(known))
    _, results = run_study(two_lines, own, tmp_path / "out", seeds=[0])
    data = results["first"][0]["data"]
    assert (data["protocol"], data["known"], data["classes"]) == (f"own {Path(bench.data).name}", 3, 10)
    assert folder_of(two_lines, Choice(), own, tmp_path).name == (
        f"own-{Path(bench.data).name}-known-test_efficientnet-short-test_efficientnet-1-orders"
    )


def test_files_of_known_classes_with_one_name_have_tables_of_their_own_where_they_differ(bench, two_lines, tmp_path):
    def setup(folder: str, *classes: str) -> Setup:
        known = tmp_path / folder / "known.txt"
        known.parent.mkdir(exist_ok=True)
        known.write_text("\n".join(classes))
        return Setup("own", bench.data, bench.backbone, orders=1, weights=bench.weights, known=str(known))

    def ran(own: Setup) -> Path:
        run_study(two_lines, own, tmp_path / "out", seeds=[0])
        return folder_of(two_lines, Choice(), own, tmp_path / "out")

    first, same = setup("a", "kind0", "kind1"), setup("c", "kind1", "kind0")
    other = setup("b", "kind2", "kind3", "kind4")
    place = ran(first)
    told = (place / "table1.md").read_text()
    apart = ran(other)
    assert apart != place
    assert "its 3 known classes of 10" in (apart / "table1.md").read_text()
    assert (place / "table1.md").read_text() == told
    assert (ran(first), ran(other), ran(same)) == (place, apart, place), "each where it was"
    assert sorted(path.parent for path, _ in records(tmp_path / "out")) == sorted([place, apart])


def test_data_folders_with_one_name_have_tables_of_their_own_where_they_differ(
    bench, two_lines, write_folder, tmp_path
):
    def setup(data: Path, *classes: str) -> Setup:
        known = tmp_path / "-".join(classes) / "known.txt"
        known.parent.mkdir(exist_ok=True)
        known.write_text("\n".join(classes))
        return Setup("own", str(data), bench.backbone, orders=1, weights=bench.weights, known=str(known))

    def ran(own: Setup) -> Path:
        run_study(two_lines, own, tmp_path / "out", seeds=[0])
        return folder_of(two_lines, Choice(), own, tmp_path / "out")

    here = write_folder(tmp_path / "a" / "photos", kinds=4, each=4)
    there = write_folder(tmp_path / "b" / "photos", kinds=4, each=6)
    moved = Path(shutil.copytree(here, tmp_path / "c" / "photos"))
    place = ran(setup(here, "kind0", "kind1"))
    told = (place / "table1.md").read_text()
    apart = ran(setup(there, "kind0", "kind1"))
    assert apart != place
    assert (place / "table1.md").read_text() == told != (apart / "table1.md").read_text()
    others = [ran(setup(data, "kind2", "kind3")) for data in (here, there)]
    assert len({place, apart, *others}) == 4, "known classes keep them apart too"
    again = [ran(setup(data, "kind0", "kind1")) for data in (here, there, moved)]
    assert again == [place, apart, place], "each where it was, wherever the same data lies"


def test_a_folder_of_results_from_before_known_classes_were_noted_is_gone_on_with(bench, two_lines, tmp_path):
    (tmp_path / "known.txt").write_text("kind0\nkind1\n")
    own = Setup("own", bench.data, bench.backbone, weights=bench.weights, known=str(tmp_path / "known.txt"))
    before = folder_of(two_lines, Choice(), own, tmp_path)
    before.mkdir()
    (before / "table1.json").touch()
    assert folder_of(two_lines, Choice(), own, tmp_path) == before


class Listener(Reporter):
    """Remembers what is said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, message: str) -> None:
        self.said.append(message)


def test_what_may_not_be_meant_of_data_of_ones_own_is_said_before_anything_is_measured(
    bench, two_lines, write_folder, tmp_path
):
    data = write_folder(tmp_path / "photos", kinds=4, each=4)
    (data / "kind9").mkdir()
    for image in sorted((data / "kind0").iterdir()):
        shutil.copy(image, image.with_name(f"again-{image.name}"))
    (tmp_path / "known.txt").write_text("kind0\nkind1\n")
    own = Setup("own", str(data), bench.backbone, weights=bench.weights, known=str(tmp_path / "known.txt"))
    heard = Listener()
    run_study(two_lines, own, tmp_path / "out", seeds=[0], measure=False, reporter=heard)
    empty, copied = heard.said
    assert empty == "warning: 1 class folder has no image: kind9"
    assert re.match(r"warning: [1-4] images? of the stream (is|are) equal to a labelled one, such as .*kind0", copied)


@pytest.mark.parametrize("seeds", [[], [-1]])
def test_seeds_are_whole_numbers_from_0_up_and_at_least_one(bench, two_lines, tmp_path, seeds):
    with pytest.raises(SettingsError, match="seeds"):
        run_study(two_lines, bench, tmp_path, seeds=seeds)


def test_a_damaged_record_is_named(bench, two_lines, tmp_path):
    run_study(two_lines, bench, tmp_path, seeds=[0])
    path = folder_of(two_lines, Choice(), bench, tmp_path) / "table1.json"
    path.write_text(json.dumps({"study": "table1"}))
    with pytest.raises(DataError, match=r"table1\.json.*run its study again"):
        records(tmp_path)


def test_the_study_of_sizes_shares_what_is_at_the_size_of_training_with_table_1(bench):
    setup = dataclasses.replace(bench, backbone="tf_efficientnet_lite0", weights=None)
    sizes = {line.name: running._cell(line, 0, setup) for line in STUDIES["sizes"].lines(Choice())}
    table = {line.name: running._cell(line, 0, setup) for line in STUDIES["table1"].lines(Choice())}
    smaller, larger = sizes["LTC, `default`, 224 pixels"], sizes["LTC, `default`, 320 pixels"]
    assert smaller.key == table["LTC, `default`"].key
    assert larger.key != smaller.key
    assert larger.training != smaller.training
    assert [f"--image-size {size} " in cell.command for size, cell in ((224, smaller), (320, larger))] == [True, True]


def test_studies_at_different_input_sizes_are_kept_apart(bench, tmp_path):
    larger = dataclasses.replace(bench, image_size=448)
    folders = {folder_of(STUDIES["table1"], Choice(), setup, tmp_path) for setup in (bench, larger)}
    assert len(folders) == 2
