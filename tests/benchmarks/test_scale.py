"""The simulation obeys the bounds of queueing and reproduces measurements; the tables follow from the constants."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from newfound.benchmarks import postgres, scale
from newfound.benchmarks.scale_tables import load_of, markdown, reproduced, tables
from newfound.benchmarks.simulation import Load, simulate
from newfound.cli import app

seconds = st.floats(0.001, 1.0)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_one_encoder_is_as_fast_as_it_encodes_and_commits():
    # 10 images in 0.8 + 0.2 s, one after the other; handing blocks on, only the 0.8 s of encoding count.
    assert simulate(Load(10, encode=0.8, serial=0.2), 1) == pytest.approx(10.0)
    assert simulate(Load(10, encode=0.8, serial=0.2, ahead=2), 1) == pytest.approx(12.5)


def test_very_many_encoders_are_as_fast_as_the_lock():
    # 10 images every 0.2 s under the lock, however many encode.
    assert simulate(Load(10, encode=0.8, serial=0.2), 300) == pytest.approx(50.0)
    assert simulate(Load(10, encode=0.8, serial=0.2, ahead=2), 300) == pytest.approx(50.0)


def test_writers_that_take_in_each_others_blocks_hold_the_lock_longer_the_more_they_are():
    # 20 writers: 0.2 s for the own block and 19 times 0.1 s for those of others: 10 images in 2.1 s.
    load = Load(10, encode=0.5, serial=0.2, catch_up=0.1)
    assert simulate(load, 20) == pytest.approx(10 / 2.1)
    assert simulate(load, 40) < simulate(load, 20)


def test_encoders_share_the_cores_there_are():
    # Nothing is serial: 4 encoders on 2 cores are two encoders.
    load = Load(10, encode=1.0, serial=1e-9)
    assert simulate(load, 4, cores=2) == pytest.approx(20.0)
    assert simulate(load, 4, cores=4) == pytest.approx(40.0)


def test_the_best_number_of_encoders_is_where_their_speed_meets_the_locks():
    # (0.8 + 0.2) / N = 0.2 at N = 5.
    assert Load(10, encode=0.8, serial=0.2).best() == 5


@given(encode=seconds, serial=seconds, ahead=st.sampled_from([1, 2]), encoders=st.integers(1, 12))
def test_nothing_is_faster_than_its_bound(encode, serial, ahead, encoders):
    load = Load(1, encode, serial, ahead=ahead)
    assert 0 < simulate(load, encoders) <= load.bound(encoders) * (1 + 1e-6)


@given(encode=seconds, serial=seconds, catch_up=seconds, writers=st.integers(2, 12))
def test_writers_stay_below_the_bound_of_taking_everything_in(encode, serial, catch_up, writers):
    load = Load(1, encode, serial, catch_up)
    assert simulate(load, writers) <= load.bound(writers) * 1.05  # what is not taken in yet when counting ends


@pytest.fixture
def figures():
    """Round numbers: what a measurement could have come to."""
    line = {"fixed": 1e-4, "each": 1e-7, "at": {}}
    known = {name: line for name in ("decide", "save", "load")}
    known |= {name: {"fixed": 0.0, "each": 2000.0, "at": {}} for name in ("state", "memory")}
    journal = {"enter": {"fixed": 0.01, "each": 1e-4}, "catch_up": {"fixed": 0.005, "each": 5e-5}, "bytes": 1500.0}
    rates = {"1": {"median": 64.0}, "2": {"median": 110.0}}
    return {
        "images": {"backbone": "b", "pixels": 224, "jpeg": [500, 375], "decode": 0.004, "encode": 0.016},
        "dictionaries": {"prototypes": known, "evidence": known},
        "sqlite": journal, "postgres": journal,
        "writers": {"block": 64, "cores": 2.0, "encode": 0.9, "serial": 0.1, "catch_up": 0.02, "rates": rates},
        "dimension": 512, "machine": "2 cores", "commit": "abc", "time": "2026-01-01 00:00",
    }  # fmt: skip


def test_a_block_costs_what_its_stages_do(figures):
    one = load_of(figures, "prototypes", 10_000, writers=True)
    decide = 256 * (1e-4 + 1e-7 * 10_000)
    assert one.encode == pytest.approx(256 * 0.02)
    # A snapshot after every second of deciding.
    assert one.serial == pytest.approx(0.01 + 256e-4 + decide + decide * (1e-4 + 1e-3))
    assert one.catch_up == pytest.approx(0.005 + 256 * 5e-5 + decide)
    assert load_of(figures, "prototypes", 10_000, writers=False).catch_up == 0.0


def test_measured_writers_stand_beside_simulated_ones(figures):
    first, second = reproduced(figures)
    assert first == (1, 64.0, pytest.approx(64.0), pytest.approx(0.0))
    # Two writers: a cycle of 0.9 + 0.1 + one block of the other, 0.02 s, for 2 x 64 images.
    assert second[2] == pytest.approx(128 / 1.02, rel=0.02)


def test_the_page_has_every_table_and_says_where_it_was_measured(figures):
    page = markdown(figures)
    for title in tables(figures):
        assert f"**{title}**" in page
    assert "5,556 core hours" in page  # 10^9 x 0.02 s / 3,600 s
    assert "2 cores, one thread each, commit abc" in page


TINY = scale.Sizes(
    images=2, pixels=32, backbone="test_efficientnet", dimension=16, categories=(10, 20), blocks=(4, 8),
    writers=(1, 2), writer_blocks=1, repeats=1, memory=50,
)  # fmt: skip


def test_what_one_process_does_is_measured_as_lines_that_rise(tmp_path):
    images, journal = scale._images(TINY), scale._journal(tmp_path / "journal.db", TINY)
    assert min(images["decode"], images["encode"], journal["bytes"]) > 0
    for kind in scale.KINDS:
        known = scale._dictionary(kind, TINY)
        assert known["state"]["each"] >= 16 * 4, "a float32 or more for each dimension of a category"
        assert all(line["fixed"] >= 0 and line["each"] >= 0 for line in known.values())


def test_a_line_goes_through_its_points_and_never_below_nothing():
    assert scale._line((1, 3), [5.0, 9.0])["each"] == pytest.approx(2.0)  # 3 + 2 x
    assert scale._line((1, 3), [5.0, 9.0])["fixed"] == pytest.approx(3.0)
    falling = scale._line((1, 3), [9.0, 5.0])
    assert (falling["fixed"], falling["each"]) == (7.0, 0.0)
    below = scale._line((1, 2), [1.0, 4.0])  # -2 + 3 x: through nothing instead, with the mean of 1 and 2
    assert (below["fixed"], below["each"]) == (0.0, 1.5)


@pytest.mark.slow
def test_every_constant_can_be_measured_and_simulated_from(tmp_path, monkeypatch):
    if postgres.binaries() is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    monkeypatch.setattr(scale, "Sizes", lambda: TINY)
    path = tmp_path / "scale.json"
    result = invoke("bench", "scale", "--results", path)
    assert result.exit_code in (0, 3), result.stderr  # so little is measured that the simulation may be off
    figures = json.loads(path.read_text())
    assert set(figures["writers"]["rates"]) == {"1", "2"}
    assert all(rate["median"] > 0 for rate in figures["writers"]["rates"].values())
    assert invoke("bench", "scale", "--simulate", "--results", path).stdout == result.stdout


def test_the_simulation_prints_every_table(tmp_path, figures):
    path = tmp_path / "scale.json"
    path.write_text(json.dumps(figures))
    printed = invoke("bench", "scale", "--simulate", "--results", path).stdout
    told = json.loads(invoke("bench", "scale", "--simulate", "--results", path, "--json").stdout)
    assert set(told["tables"]) == set(tables(figures))
    assert all(title in printed for title in told["tables"])


def test_a_simulation_that_misses_what_was_measured_goes_no_further(tmp_path, figures):
    path = tmp_path / "scale.json"
    path.write_text(json.dumps(figures | {"writers": figures["writers"] | {"rates": {"1": {"median": 30.0}}}}))
    result = invoke("bench", "scale", "--simulate", "--results", path)
    assert result.exit_code == 3
    assert "off what was measured (writers: 1)" in " ".join(result.stderr.split())
    assert "Writers: simulated and measured" in result.stdout
    assert "A billion images" not in result.stdout


def test_simulating_without_constants_says_how_to_get_them(tmp_path):
    result = invoke("bench", "scale", "--simulate", "--results", tmp_path / "none.json")
    assert result.exit_code == 2
    assert "newfound bench scale" in result.stderr
