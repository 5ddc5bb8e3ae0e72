"""What the pages say holds: links lead somewhere, code runs, commands exist."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from doc_pages import PAGES, ROOT, anchors, blocks, inline_commands, links, misread, name_of, train_briefly
from PIL import Image

DOCS = [page for page in PAGES if page.parent != ROOT]  # the README's blocks are run by test_readme.py
TUTORIAL = ROOT / "docs" / "tutorial.md"
WITH_CODE = [
    page for page in DOCS if page != TUTORIAL and any(b.language == "python" and not b.not_run for b in blocks(page))
]


@pytest.fixture
def workplace(tmp_path, monkeypatch, write_folder, picture, run_folder):
    """An empty directory but for what pages take for granted: labelled/, incoming/, and the run runs/birds."""
    place = tmp_path / "workplace"
    write_folder(place / "labelled", kinds=3, each=3)  # too few to rehearse with, which would take longest
    (place / "incoming").mkdir()
    for kind in range(5):
        for number in range(2):
            Image.fromarray(picture(kind, 50 + number)).save(place / "incoming" / f"{number}{kind}.png")
    shutil.copytree(run_folder, place / "runs" / "birds")
    train_briefly(monkeypatch)
    monkeypatch.chdir(place)
    return place


def run_block(page: Path, block, names: dict) -> None:
    code = "\n" * block.line + block.code  # a traceback shows the page's own line
    exec(compile(code, name_of(page), "exec", dont_inherit=True), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{name_of(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)} links to {link}: there is no such heading"


def test_every_file_that_the_architecture_names_is_there():
    named = set(re.findall(r"`([\w/*]+\.py)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))
    package = ROOT / "src" / "newfound"
    folders = [ROOT, package, *(path for path in package.iterdir() if path.is_dir())]
    gone = sorted(name for name in named if not any(any(folder.glob(name)) for folder in folders))
    assert len(named) > 100
    assert not gone


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_is_one_that_newfound_takes(page):
    told = [command for block in blocks(page) if block.language in ("", "bash") for command in block.commands]
    wrong = [misread(command, whole=True) for command in told]
    wrong += [misread(command, whole=False) for command in inline_commands(page)]
    assert not list(filter(None, wrong))


@pytest.mark.parametrize(
    ("line", "whole"),
    [
        ("newfound trian labelled/", True),
        ("newfound train labelled/ --out run --preste paper", True),
        ("newfound train labelled/", True),
        ("newfound categories run renam 7 heron", True),
        ("newfound train labelled/ more/ --out run", True),
        ("newfound bench tabel1", False),
        ("newfound train --contniue RUN", False),
    ],
)
def test_a_command_that_newfound_does_not_take_is_noticed(line, whole):
    assert misread(line, whole=whole) is not None


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
@pytest.mark.usefixtures("workplace")
def test_python_on_a_page_runs_from_top_to_bottom(page):
    names: dict = {"__name__": "__main__"}
    run = [block for block in blocks(page) if block.language == "python" and not block.not_run]
    assert run, "a page that is listed here has Python to run"
    for block in run:
        run_block(page, block, names)  # fails with the line of the page


def test_the_tutorial_works_line_by_line_from_an_empty_directory(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from newfound.cli import app

    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks(TUTORIAL):
        if block.not_run:
            continue
        if block.language == "python":
            run_block(TUTORIAL, block, names)
        for command in block.commands:
            result = CliRunner().invoke(app, shlex.split(command, comments=True)[1:])
            assert result.exit_code == 0, f"{command}\n{result.output}"
    classes = (tmp_path / "runs" / "second" / "classes.json").read_text()
    assert "my first find" in classes, "what was named has been taught"


@pytest.fixture
def agreeing(tmp_path):
    """The file of the method that the page for researchers shows."""
    research = ROOT / "docs" / "research.md"
    shown = next(block.code for block in blocks(research) if block.code.startswith("# agreeing.py"))
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "agreeing.py").write_text(shown, encoding="utf-8")
    return tmp_path / "methods" / "agreeing.py"


def test_the_method_of_the_page_for_researchers_is_found_by_its_file_and_learns(
    agreeing, monkeypatch, fit_tiny, pictures
):
    import newfound as nf
    from newfound import method
    from newfound.benchmarks.studies import STUDIES, Choice

    monkeypatch.setattr(method, "__path__", [*method.__path__, str(agreeing.parent)])
    method._registry.cache_clear()
    try:
        assert "agreeing" in nf.methods()
        assert STUDIES["table1"].lines(Choice(methods=("agreeing",))), "and Table 1 compares it"
        run = fit_tiny(pictures(3), method="agreeing", pull=0.3)
        assert all(-1 <= row["agreement"] <= 1 for row in run.log)
        assert run.discoverer().observe(pictures(3, 1)[0])
    finally:
        monkeypatch.undo()
        sys.modules.pop("newfound.method.agreeing", None)
        vars(method).pop("agreeing", None)
        method._registry.cache_clear()


@pytest.mark.slow
def test_the_method_of_the_page_for_researchers_passes_the_conformance_suite(agreeing):
    plugin = agreeing.parent.parent / "with_agreeing.py"
    plugin.write_text(f"from newfound import method\n\nmethod.__path__.append({str(agreeing.parent)!r})\n")
    lines = [line for block in blocks(ROOT / "docs" / "research.md") for line in block.code.splitlines()]
    shown = next(line for line in lines if line.startswith("python -m pytest"))
    command = [sys.executable, *shlex.split(shown)[1:], "-p", "with_agreeing"]
    paths = os.pathsep.join([str(plugin.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20


def test_every_metric_that_operators_are_told_of_is_there():
    pytest.importorskip("prometheus_client", reason="newfound[serve] is not installed")
    from newfound.service.metrics import Metrics

    told = set(re.findall(r"`(newfound_\w+)`", (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")))
    metrics = Metrics()
    metrics.images.labels("read")
    text = metrics.text().decode()
    assert len(told) > 4
    assert not [name for name in told if name not in text]


def test_what_is_not_run_has_one_of_few_reasons():
    reasons = {block.not_run for page in PAGES for block in blocks(page) if block.not_run}
    assert all(len(reason.split()) > 2 for reason in reasons)
    assert len(reasons) <= 5, f"blocks are there to be run: {sorted(reasons)}"


def test_the_site_has_every_page():
    shown = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert shown == {page.relative_to(ROOT / "docs").as_posix() for page in DOCS}


@pytest.fixture(scope="module")
def site_math():
    """docs/site_math.py, which has no package."""
    spec = importlib.util.spec_from_file_location("site_math", ROOT / "docs" / "site_math.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        ("n_k", "<msub><mi>n</mi><mi>k</mi></msub>"),
        (r"\tfrac12 x", "<mfrac><mn>1</mn><mn>2</mn></mfrac><mi>x</mi>"),
        ("y'^2", "<msup><mi>y</mi><mrow><mo>′</mo><mn>2</mn></mrow></msup>"),
        (r"\mathrm{a b}-1", "<mtext>a&#160;b</mtext><mo>−</mo><mn>1</mn>"),
        (r"\sum_{i} |x|", "<munder><mo>∑</mo><mrow><mi>i</mi></mrow></munder>"
         '<mo stretchy="false">&#124;</mo><mi>x</mi><mo stretchy="false">&#124;</mo>'),
        (r"\left[ a \right]", "<mrow><mo>[</mo><mrow><mi>a</mi></mrow><mo>]</mo></mrow>"),
    ],
)  # fmt: skip
def test_a_formula_becomes_mathml(site_math, tex, expected):
    assert f"<mrow>{expected}</mrow></math>" in site_math.mathml(tex)


def test_every_formula_on_the_pages_becomes_mathml_and_no_code_does(site_math):
    formulas = 0
    for page in DOCS:
        text = page.read_text(encoding="utf-8")
        shown = site_math.on_page_markdown(text)
        found = re.findall(r"<math.*?</math>", shown)
        formulas += len(found)
        for formula in found:
            ElementTree.fromstring(formula)
        assert [b.code for b in blocks(page)] == re.findall(r"^ *```\w*\n(.*?)^ *```$", shown, flags=re.M | re.S), page
    assert formulas > 50


@pytest.mark.parametrize("tex", [r"\wibble", "{a", "a}", r"\left( a", "x^"])
def test_a_formula_that_is_not_understood_stops_the_build(site_math, tex):
    with pytest.raises(ValueError, match=r"\w"):
        site_math.mathml(tex)


@pytest.mark.slow
def test_the_site_is_built_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material", reason="newfound[docs] is not installed")
    pytest.importorskip("mkdocstrings", reason="newfound[docs] is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(DOCS)
    loads = re.compile(r"<(?:script|img|iframe)[^>]* src=\"?(?:https?:)?//|<link[^>]* rel=\"?(?:style|preconn)[^>]*//")
    assert not [page for page in pages if loads.search(page.read_text(encoding="utf-8"))]
