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


@pytest.mark.parametrize(("given", "expected"), [({}, "4"), ({"OPENBLAS_THREAD_TIMEOUT": "20"}, "20")])
def test_threads_of_numpy_wait_briefly_too(given, expected, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(given))
    spin_briefly()
    assert os.environ["OPENBLAS_THREAD_TIMEOUT"] == expected


def test_the_command_says_so_before_numpy_and_pytorch_are_loaded():
    code = (
        "import os, sys\n"
        "from newfound import _threads, cli\n"
        "said = _threads.spin_briefly\n"
        "def spin_briefly():\n"
        "    print(bool({'torch', 'numpy'} & set(sys.modules)))\n"
        "    said()\n"
        "cli.spin_briefly = spin_briefly\n"
        "sys.argv = ['newfound', '--version']\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "False", done.stderr
