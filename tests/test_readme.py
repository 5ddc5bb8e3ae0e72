"""What the README shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from doc_pages import train_briefly
from PIL import Image

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_five_lines_of_python_recognise_and_discover(tmp_path, monkeypatch, write_folder, picture, capsys):
    write_folder(tmp_path / "labelled", kinds=2, each=3)
    (tmp_path / "incoming").mkdir()
    Image.fromarray(picture(0, 50)).save(tmp_path / "incoming" / "a.png")
    Image.fromarray(np.zeros((24, 24, 3), np.uint8)).save(tmp_path / "incoming" / "b.png")
    monkeypatch.chdir(tmp_path)
    train_briefly(monkeypatch)
    exec(compile(blocks("python")[0], "README.md", "exec"), {})
    lines = capsys.readouterr().out.strip().splitlines()
    assert [Path(line.split()[0]).name for line in lines] == ["a.png", "b.png"]
    assert (tmp_path / "runs" / "birds" / "config.json").is_file()


def test_the_lines_for_embeddings_of_ones_own_run_as_they_stand():
    names = {"prototypes": np.eye(3, 8), "features": np.eye(8)}
    exec(compile(blocks("python")[1], "README.md", "exec"), names)
    assert names["out"].category.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


def test_the_lines_for_evidence_run_as_they_stand_and_know_the_classes():
    rng = np.random.default_rng(0)
    targets = np.repeat(np.arange(4), 10)
    labelled = 3 * np.eye(4, 8)[targets] + 0.3 * rng.standard_normal((40, 8))
    new = 3 * np.eye(8)[[6, 6, 6]] + 0.3 * rng.standard_normal((3, 8))
    names = {"labelled": labelled, "targets": targets, "features": np.concatenate([labelled[::10], new])}
    exec(compile(blocks("python")[2], "README.md", "exec"), names)
    assert names["out"].category[:4].tolist() == [0, 1, 2, 3]
    assert names["out"].created.tolist()[:5] == [False] * 4 + [True]
    assert ((names["out"].new_probability >= 0) & (names["out"].probability <= 1)).all()


def test_every_command_in_the_readme_exists():
    from typer.main import get_command

    from newfound.cli import app

    shown = set(re.findall(r"^newfound (\w+)", "\n".join(blocks("bash")), flags=re.MULTILINE))
    assert shown >= {"train", "discover", "evaluate", "split", "doctor", "demo", "bench"}
    assert shown <= set(get_command(app).commands)


def test_every_choice_in_the_readme_can_be_chosen():
    import newfound as nf

    for name in [*nf.methods(), *nf.creators()]:
        assert f"`{name}`" in README, f"{name} is not in the README's table of choices"
