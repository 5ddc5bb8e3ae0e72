"""Growth is fitted as it is defined, and what was measured is what is drawn and written."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from newfound.benchmarks import growth, search_speed
from newfound.cli.bench_growth import growth as command
from newfound.errors import SettingsError


def points(exponent):
    made = [growth.Point("categories", 10**e, 2.0 * 10 ** (exponent * e), 10.0**e) for e in range(2, 7)]
    return made + [growth.Point("images", 10**e, 5.0, 7.0) for e in range(3, 6)]


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_an_exponent_is_the_slope_on_log_axes(exponent):
    fitted = growth._exponents(points(exponent))
    assert fitted["categories, newfound"] == pytest.approx(exponent)
    assert fitted["categories, bare product"] == pytest.approx(1.0)
    assert fitted["images, newfound"] == pytest.approx(0.0)


def test_the_figure_holds_what_was_measured():
    made = growth.Growth(points(0.5), growth._exponents(points(0.5)))
    drawing = growth.draw(made)
    assert drawing.rows == [point.as_dict() for point in made.points]
    ours = drawing.figure.axes[0].lines[0]
    assert ours.get_xdata().tolist() == [10**e for e in range(2, 7)]
    assert drawing.figure.axes[0].get_xscale() == "log"


def test_too_small_a_measurement_is_refused():
    with pytest.raises(SettingsError, match="1,000 categories"):
        growth.measure(largest=100)


def test_the_command_writes_numbers_table_and_figure(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "_WARM", 256)
    monkeypatch.setattr(search_speed, "_DIMENSION", 32)
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, ["--out", str(tmp_path), "--categories", "1000", "--images", "10000"])
    assert result.exit_code == 0, result.output
    told = json.loads((tmp_path / "growth.json").read_text())
    assert [point["size"] for point in told["points"]] == [100, 1000, 1000, 10000]
    assert "Fitted exponents" in (tmp_path / "growth.md").read_text()
    assert (tmp_path / "growth.png").stat().st_size > 0
    assert (tmp_path / "growth.svg").stat().st_size > 0
