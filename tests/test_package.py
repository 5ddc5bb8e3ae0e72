"""What is packed is what is needed: wheel and sdist are whole, types hold, and what ships beside them is sound."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
WORKFLOW = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
# Every line of a Dockerfile that is an instruction, with those that it goes on in.
INSTRUCTIONS = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE)).split("\n")


def instructions(name: str) -> list[str]:
    """What stands behind an instruction of the Dockerfile, each time it is given."""
    return [line.partition(" ")[2].strip() for line in INSTRUCTIONS if line.startswith(f"{name} ")]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    """The wheel and the sdist, the wheel built from the sdist, as whoever gets only that would build it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_holds_the_package_whole_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as archive:
        names = set(archive.namelist())
    sources = {p for p in (ROOT / "src/newfound").rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert {str(p.relative_to(ROOT / "src")) for p in sources} <= names
    assert "newfound/py.typed" in names
    assert not any(name.endswith((".pth", ".safetensors", ".jpg", ".pyc")) for name in names)
    assert {name.split("/")[0] for name in names} == {"newfound", f"newfound-{PROJECT['version']}.dist-info"}


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no checkout: what belongs to it is not known")
def test_the_sdist_holds_what_the_tests_need(built):
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    known = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    wanted = {n for n in known.stdout.split("\0") if n and (ROOT / n).is_file()}
    results = {n for n in wanted if n.startswith("benchmarks/results/")}
    assert wanted - results - {".gitignore"} <= names
    assert not results & names


@pytest.mark.slow
def test_the_wheel_discovers_in_an_environment_of_its_own(built, tmp_path, write_folder):
    """Only what newfound depends on is borrowed from this environment, so that PyTorch is not fetched again."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    # A folder that a .pth file names is searched, but its own .pth files, as of an editable newfound, are not read.
    (site,) = home.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--ignore-installed", "--no-index", built[0]]
    subprocess.run(install, check=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NEWFOUND"))}
    env |= {"NEWFOUND_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

    def run(*command: object) -> str:
        options = {"cwd": tmp_path, "env": env, "check": True, "stdout": subprocess.PIPE, "text": True}
        return subprocess.run([str(word) for word in command], **options).stdout

    where = run(python, "-c", "import newfound; print(newfound.__file__)").strip()
    assert Path(where).is_relative_to(home)
    data = write_folder(tmp_path / "shapes", kinds=4, each=6)
    assert "report" in run(home / "bin" / "newfound", "demo", "--data", data, "--out", tmp_path / "demo", "--json")
    assert (tmp_path / "demo" / "report.html").is_file()


@pytest.mark.slow
def test_types_hold_strictly_on_all_that_is_public():
    """As `make lint`; what is public and which rules hold for the rest is said in pyproject.toml."""
    result = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_public_module_is_among_those_that_are_checked_less_strictly():
    import newfound

    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert tool["strict"] is True
    loose = [rule["module"] for rule in tool["overrides"] if rule.get("disallow_untyped_defs") is False]
    modules = [name.removesuffix(".*") for names in loose for name in ([names] if isinstance(names, str) else names)]
    # Methods and creators are chosen by name; what lists them is one function each.
    public = set(newfound._PUBLIC.values()) - {"newfound.method", "newfound.creation"}
    assert not public & set(modules)
    for name in modules:
        path = ROOT / "src" / name.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file(), f"{name} is no longer there"


def test_the_version_is_said_once_and_the_same_everywhere():
    import newfound

    assert newfound.__version__ == importlib.metadata.version("newfound") == PROJECT["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == PROJECT["version"]
    assert re.search(rf"^## {re.escape(PROJECT['version'])}\b", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)


def test_the_citation_has_all_that_the_format_asks_for():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert all(author.get("name") or author.get("family-names") for author in citation["authors"])
    assert all({"type", "title", "authors"} <= set(reference) for reference in citation["references"])


def test_every_extra_that_newfound_asks_for_is_one_that_can_be_installed():
    pattern = re.compile(r"newfound\[([\w,]+)\]")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py"), ROOT / "Dockerfile"]
    named = {extra for page in pages for found in pattern.findall(page.read_text()) for extra in found.split(",")}
    assert {"serve", "onnx", "naming"} <= named
    assert named <= set(PROJECT["optional-dependencies"])


def test_the_tests_bring_every_extra_along():
    extras = PROJECT["optional-dependencies"]
    (all_of_them,) = re.findall(r"newfound\[([\w,]+)\]", " ".join(extras["test"]))
    assert set(all_of_them.split(",")) == set(extras) - {"test", "dev"}


def test_the_pythons_that_are_declared_are_those_that_are_tested():
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert declared == WORKFLOW["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_the_workflow_runs_what_everybody_runs_and_may_only_read():
    steps = [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step] == ["make test", "make lint"]
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("exec make test")
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert {"test", "lint", "demo", "docs"} <= set(targets)


def test_the_image_is_for_processors_or_cuda_and_does_not_run_as_root():
    assert "DEVICE=cpu" in instructions("ARG")
    assert re.search(r"cpu\) .*cuda\) .*\*\) .*exit 1", " ".join(instructions("RUN")))
    assert instructions("USER")[-1] == "10001"
    assert "/healthz" in instructions("HEALTHCHECK")[0]
    assert instructions("ENTRYPOINT") == ['["newfound"]']
    assert not re.search(r"token|password|secret", " ".join(instructions("ENV") + instructions("ARG")), re.IGNORECASE)


def test_the_builder_gets_what_the_wheel_is_made_of_and_nothing_beside_it():
    ignored = (ROOT / ".dockerignore").read_text().split("\n")
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    copied = {word for line in instructions("COPY") for word in line.split()[:-1] if not word.startswith("--")}
    assert copied == let_in


def test_compose_starts_a_service_that_its_command_line_takes():
    from typer.main import get_command

    from newfound.cli import app

    services = COMPOSE["services"]
    words = [re.sub(r"\$\{\w+[^}]*\}", "birds", word) for word in services["newfound"]["command"]]
    command = get_command(app).commands[words[0]]
    given = command.make_context("serve", words[1:]).params
    assert (given["host"], str(given["run"])) == ("0.0.0.0", "/runs/birds")
    assert given["journal"] == "postgresql://newfound@database/newfound"
    port = services["newfound"]["ports"][0].rpartition(":")[2]
    assert int(port) == given["port"] == int(instructions("EXPOSE")[0])
    assert services["newfound"]["depends_on"]["database"]["condition"] == "service_healthy"
    assert "healthcheck" in services["database"]
    assert services["newfound"]["ports"][0].startswith("127.0.0.1:"), "without TLS it stays on this machine"


def test_compose_has_no_secret_of_its_own_and_does_not_start_without_one():
    settings = [service["environment"] for service in COMPOSE["services"].values()]
    secrets = {name: value for some in settings for name, value in some.items() if re.search("TOKEN|PASSWORD", name)}
    assert set(secrets) == {"NEWFOUND_TOKEN", "PGPASSWORD", "POSTGRES_PASSWORD"}
    assert all(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value) for value in secrets.values())


def test_every_volume_that_compose_names_is_there_and_mounted():
    mounted = {v.split(":")[0] for s in COMPOSE["services"].values() for v in s["volumes"] if not v.startswith(".")}
    assert mounted == set(COMPOSE["volumes"])


def tool(name: str) -> str:
    """A program beside this Python, or anywhere; the test is skipped without it."""
    found = shutil.which(name, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if found is None:
        pytest.skip(f"{name} is not installed (newfound[test])")
    return found


def test_hadolint_finds_nothing_in_the_dockerfile():
    result = subprocess.run([tool("hadolint"), str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_yamllint_finds_nothing():
    rules = "{extends: default, rules: {line-length: {max: 120}, document-start: disable}}"
    files = [ROOT / name for name in ("compose.yaml", ".github/workflows/test.yml", "CITATION.cff")]
    result = subprocess.run([tool("yamllint"), "--strict", "-d", rules, *files], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
