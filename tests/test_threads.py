"""Promises of newfound._threads: threads spin briefly unless the environment says otherwise, and in time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from newfound._threads import spin_briefly


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "10000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, None),
    ],
)
def test_what_the_environment_says_counts(given, expected, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(given))
    spin_briefly()
    assert os.environ.get("GOMP_SPINCOUNT") == expected


def test_the_command_says_so_before_pytorch_is_loaded():
    code = (
        "import os, sys\n"
        "from newfound import _threads, cli\n"
        "said = _threads.spin_briefly\n"
        "def spin_briefly():\n"
        "    print('torch' in sys.modules)\n"
        "    said()\n"
        "cli.spin_briefly = spin_briefly\n"
        "sys.argv = ['newfound', '--version']\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "False", done.stderr
