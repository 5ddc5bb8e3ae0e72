"""The pages of the documentation as tests see them: links, headings, blocks of code, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^ *```(\w*)[^`]*$")
_NOT_RUN = re.compile(r"^ *(?:<!-- not run: (.+) -->|# not run here: (.+))$")  # above a block, or its first line
_INLINE = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block, where it begins, and why it is not run, if it is not."""

    line: int
    language: str
    code: str
    not_run: str | None

    @property
    def commands(self) -> list[str]:
        """The lines that call newfound, without what follows in a pipe."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [re.split(r"\s[>|]", line)[0] for line in lines if line.startswith("newfound ")]


def train_briefly(monkeypatch: Any) -> None:
    """Short trainings are two epochs on two views from now on: what a page shows runs as it stands, only sooner."""
    from newfound import presets

    monkeypatch.setitem(presets.SHORT, "epochs", 2)
    monkeypatch.setitem(presets.SHORT, "views", 2)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening:
            begins = number
            while number + 1 < len(lines) and lines[number + 1].strip() != "```":
                number += 1
            inside = lines[begins + 1 : number + 1]
            above = next((line for line in reversed(lines[:begins]) if line.strip()), "")
            reason = _NOT_RUN.match(above) or _NOT_RUN.match(inside[0] if inside else "")
            why = next(filter(None, reason.groups())) if reason else None
            found.append(Block(begins + 1, opening[1], "\n".join(inside) + "\n", why))
            number += 1
        number += 1
    return tuple(found)


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> Iterator[str]:
    """Where links and pictures of a page point to, except for addresses elsewhere."""
    for found in _LINK.finditer(_INLINE.sub("", prose(page))):
        target = found[1] or found[2]
        if not re.match(r"[a-z]+:", target):
            yield target


@cache
def anchors(page: Path) -> frozenset[str]:
    """What a link to a heading of a page may be: what GitHub and mkdocs call it, where the two agree."""
    titles = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower() for title in titles]
    return frozenset(
        title.replace(" ", "-") for title in plain if title.replace(" ", "-") == re.sub(r"[-\s]+", "-", title)
    )


def inline_commands(page: Path) -> list[str]:
    """Commands inside sentences, which may leave out what is said elsewhere."""
    return [" ".join(code.split()) for code in re.findall(r"`(newfound\s[a-z][^`]*)`", prose(page))]


def misread(line: str, *, whole: bool) -> str | None:
    """What the command line would say against a command: no such command or option, too much or, if whole, too little.

    Nothing is run, and no file is looked for.
    """
    words = shlex.split(line, comments=True)[1:]
    command = _newfound()
    above: list[str] = []  # options that commands further up take anywhere
    while True:
        context = command.context_class(command, info_name=command.name)
        try:
            values, rest, _ = command.make_parser(context).parse_args(words if whole else _options_only(words, command))
        except Exception as error:  # click's UsageError, from whichever click typer brings along
            return f"{line}: {getattr(error, 'message', error)}"
        if whole:
            missing = [p.name for p in command.params if p.required and values.get(p.name) in (None, ())]
            if missing:
                return f"{line}: {', '.join(missing)} is missing"
        if not hasattr(command, "commands"):
            return f"{line}: too many words: {rest}" if whole and rest else None
        rest = rest if whole else [word for word in words if word in command.commands or word.startswith("-")]
        name = next((word for word in rest if not word.startswith("-")), None)
        if name is None:
            named = len(words) > 0 and not any(p.param_type_name == "argument" for p in command.params)
            return f"{line}: there is no command {words[0]}" if named else None
        if name not in command.commands:
            return f"{line}: there is no command {name}"
        above += [option for p in command.params if p.param_type_name == "option" for option in p.opts]
        position = words.index(name)
        words, command = _without(words[position + 1 :], above), command.commands[name]


@cache
def _newfound() -> Any:
    from typer.main import get_command

    from newfound.cli import app

    return get_command(app)


def _options_only(words: Sequence[str], command: Any) -> list[str]:
    """The options of a command that is told in part; a group's own are those before the name of a command."""
    if hasattr(command, "commands"):
        return []
    known = {option: p for p in command.params for option in (*p.opts, *p.secondary_opts)}
    given: list[str] = []
    for word in words:
        if word.startswith("--"):
            takes = known.get(word)
            given += [word, "1"] if takes is not None and not getattr(takes, "is_flag", True) else [word]
    return given


def _without(words: Sequence[str], options: Sequence[str]) -> list[str]:
    left: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in options and word != "--help":
            next(rest, None)
        else:
            left.append(word)
    return left
