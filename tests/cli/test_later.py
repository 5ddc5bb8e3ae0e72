"""Commands that are imported when they are asked for: the list says of each what it says of itself, and needs none."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from newfound.cli import app

COMMANDS = get_command(app).commands


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_of_a_command_what_it_says_of_itself(name):
    command, card = COMMANDS[name], COMMANDS.cards()[name]
    first = " ".join(command.help.partition("\n\n")[0].split())
    assert (card.name, card.help, card.rich_help_panel) == (command.name, first, command.rich_help_panel)


def test_the_list_of_commands_imports_none_of_them():
    code = (
        "import sys, newfound.cli as cli; sys.argv = ['newfound', '--help']\n"
        "try: cli.main()\n"
        "except SystemExit: print([m for m in sys.modules if m.startswith('newfound.cli.') and '._' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "discover" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_is_made_once_and_one_that_is_not_there_never():
    assert COMMANDS["doctor"] is COMMANDS["doctor"]
    assert COMMANDS.get("observe") is None
    assert len(COMMANDS) == len(list(COMMANDS)) == len(COMMANDS.cards())


def test_a_name_that_is_nearly_right_is_suggested(invoke):
    result = invoke("discver")
    assert result.exit_code == 2
    assert "Did you mean 'discover'?" in result.stderr
