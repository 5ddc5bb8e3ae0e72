"""Commands that are imported when they are asked for: the list of all of them needs none."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer

from newfound.cli._common import CarefulGroup

MARKUP: Any = "rich"  # of every help text


class Later(NamedTuple):
    """A command of the list: where it is, the panel it is listed in, and the first paragraph of its help."""

    where: str  # module:name of a function, or of a group's app
    panel: str
    told: str


class Laters(Mapping[str, Any]):
    """Commands by name; one is imported and made when it is looked up."""

    def __init__(self, listed: Mapping[str, Later]) -> None:
        self._listed = listed
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name, self._listed[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def cards(self) -> dict[str, Any]:
        """What the list shows of each."""
        listing = typer.Typer(rich_markup_mode=MARKUP)
        for name, (_, panel, told) in self._listed.items():
            listing.command(name, help=told, rich_help_panel=panel)(lambda: None)
        return dict(typer.main.get_group(listing).commands)


class LaterGroup(CarefulGroup):
    """A group of such commands, and of no others; a class that inherits from it says which."""

    listed: ClassVar[Mapping[str, Later]] = {}

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands: Any = Laters(self.listed)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        shown = copy.copy(self)
        shown.commands = self.commands.cards()
        super(LaterGroup, shown).format_help(ctx, formatter)


def _made(name: str, later: Later) -> Any:
    module, _, attribute = later.where.partition(":")
    found = getattr(import_module(module), attribute)
    around = typer.Typer(rich_markup_mode=MARKUP)
    if isinstance(found, typer.Typer):
        around.add_typer(found, name=name, rich_help_panel=later.panel)
    else:
        around.command(name, rich_help_panel=later.panel)(found)
    return typer.main.get_group(around).commands[name]
