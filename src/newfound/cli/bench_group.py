"""`newfound bench` as a group that is only filled when one of its commands, or their list, is asked for.

It has as many commands as all others together, and `newfound --help` need not wait for them.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup


class _FilledLater(TyperGroup):
    _filled: dict[str, Any] | None = None

    @property  # type: ignore[override]
    def commands(self) -> dict[str, Any]:
        if self._filled is None:
            from newfound.cli import bench

            self._filled = dict(typer.main.get_group(bench.app).commands)
        return self._filled

    @commands.setter
    def commands(self, empty: dict[str, Any]) -> None:
        """What typer knows of when the group is made: nothing yet."""


app = typer.Typer(cls=_FilledLater, no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure newfound on this machine, and the paper's tables and figures on your data.

    \bnewfound bench list
    newfound bench table1 pets/ --protocol pets --out results/
    newfound bench report results/
    newfound bench speed
    """
