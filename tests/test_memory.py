"""Promises of newfound._memory: the allocator is asked once, where it can be, and left alone when told to."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from newfound._memory import keep_large_allocations


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("NEWFOUND_MALLOC", "0")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("the C library was asked"))
    assert keep_large_allocations() is False


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.delenv("NEWFOUND_MALLOC", raising=False)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_large_allocations() is False


def test_a_c_library_without_mallopt_is_no_error(monkeypatch):
    monkeypatch.delenv("NEWFOUND_MALLOC", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert keep_large_allocations() is False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_where_glibc_is_it_agrees_and_large_arrays_still_work():
    code = (
        "from newfound._memory import keep_large_allocations\n"
        "import platform, numpy as np\n"
        "agreed = keep_large_allocations()\n"
        "assert all(np.ones(10**6).sum() == 10**6 for _ in range(20))\n"
        "print(agreed == (platform.libc_ver()[0] == 'glibc'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True", done.stderr


def test_a_run_asks_the_allocator_before_its_backbone_makes_a_pass(run_folder, monkeypatch):
    from newfound import backbone, loading

    steps, create = [], backbone.create
    monkeypatch.setattr(loading, "keep_large_allocations", lambda: steps.append("allocator"))
    monkeypatch.setattr(backbone, "create", lambda *given, **named: steps.append("backbone") or create(*given, **named))
    loading.load(run_folder)
    assert steps[:2] == ["allocator", "backbone"]


_IN_A_THREAD = """
import platform, resource, threading
from newfound._memory import keep_large_allocations
agreed = keep_large_allocations()
import numpy as np

def faults(times):
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        [np.ones(5 * 10**6) for _ in range(3)]  # together more than an arena's heap of 64 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start

told = []
thread = threading.Thread(target=lambda: told.extend((faults(2), faults(10))))
thread.start()
thread.join()
print(told[1] if agreed else 0)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_what_a_thread_has_freed_is_not_faulted_in_again():
    done = subprocess.run([sys.executable, "-c", _IN_A_THREAD], capture_output=True, text=True, timeout=60)
    assert int(done.stdout) < 500, done.stderr  # with an arena of its own: thousands
