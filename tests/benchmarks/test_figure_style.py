"""Figures are files of one look: the same bytes for the same figure, whatever a user of matplotlib has set."""

from __future__ import annotations

import builtins
import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from newfound.benchmarks.figure_style import CLOUDS, DOUBLE, DPI, LINES, Drawing, panels, save, style, words
from newfound.errors import DataError, SettingsError

matplotlib = pytest.importorskip("matplotlib", reason="newfound[bench] is not installed")


def a_figure(width: float = 3.3):
    with style():
        figure, (ax,) = panels(1, 1, width=width, height=2.0)
        ax.plot([0, 1, 2], [1, 3, 2], marker="o", label="a line")
        ax.set_xlabel(r"$\tau_{\mathrm{init}}$ of a run")
        figure.legend()
    return figure


def test_a_figure_becomes_a_png_and_an_svg_whose_stem_may_hold_a_dot(tmp_path):
    paths = save(a_figure(), tmp_path / "new" / "alpha-0.3")
    assert [path.name for path in paths] == ["alpha-0.3.png", "alpha-0.3.svg"]
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["alpha-0.3.png", "alpha-0.3.svg"]


@pytest.mark.parametrize("width", [3.3, DOUBLE])
def test_a_figure_has_the_width_that_it_is_printed_in(tmp_path, width):
    png, svg = save(a_figure(width), tmp_path / "one")
    assert Image.open(png).size == (round(width * DPI), 2 * DPI)
    assert f'width="{72 * width:g}pt"' in svg.read_text()


def test_the_same_figure_is_the_same_bytes_whatever_a_user_has_set(tmp_path):
    first = [path.read_bytes() for path in save(a_figure(), tmp_path / "first")]
    loud = {"font.size": 30, "lines.linewidth": 9, "svg.hashsalt": None, "svg.fonttype": "path", "axes.grid": False}
    with matplotlib.rc_context(loud):
        assert [path.read_bytes() for path in save(a_figure(), tmp_path / "second")] == first


def test_text_in_an_svg_is_text(tmp_path):
    _, svg = save(a_figure(), tmp_path / "one")
    assert "of a run" in svg.read_text()
    assert "dc:date" not in svg.read_text()


def test_a_users_settings_and_backend_stay_as_they_are(tmp_path):
    before = dict(matplotlib.rcParams)
    save(a_figure(), tmp_path / "one")
    assert dict(matplotlib.rcParams) == before


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match=r"file.one\.png"):
        save(a_figure(), tmp_path / "file" / "one")


def test_the_numbers_of_a_drawing_stand_beside_it(tmp_path):
    drawing = Drawing(a_figure(), [{"x": 0.1, "name": "a, b"}, {"x": 2, "name": None}], "Two points.")
    assert [path.name for path in drawing.save(tmp_path / "one")] == ["one.png", "one.svg", "one.csv"]
    with (tmp_path / "one.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == [{"x": "0.1", "name": "a, b"}, {"x": "2", "name": ""}]


def test_without_matplotlib_an_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SettingsError, match=r"pip install 'newfound\[bench\]'"), style():
        pass


@pytest.mark.parametrize("looks", [LINES, CLOUDS])
def test_looks_differ_in_colour_and_without_it(looks):
    assert len({look.colour for look in looks}) == len(looks)
    assert len({look.marker for look in looks}) == len(looks)


@given(st.text(min_size=1))
def test_any_name_of_a_class_can_stand_in_a_legend(name):
    shown = words(name)
    assert not shown.startswith("_")  # matplotlib would leave it out
    assert shown.replace(r"\$", "").count("$") == 0
    assert len(shown.replace(r"\$", "$")) <= 32
