"""Promises of training in several processes: what one process would learn, two learn together; and none waits for ever.

Run as a script, in two processes, this file trains `CASES` and leaves what each process holds; the tests compare.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from newfound import launching, losses
from newfound.distributed import AllRows, OwnRows, Ranks
from newfound.errors import SettingsError
from newfound.progress import Reporter

# Measured: weights within 2.8e-6 of one process's for smile, whose weights move by up to 0.8, and within 4.4e-7 for all
# others, which move by 1e-3 and more; thresholds within 2.1e-8 at every step.
TOLERANCE = 1e-5
# 20 images in batches of 7, 7 and 6: shares of 4 and 3, one row of which is only there to fill up.
_BUSY = {"p_gen": 1.0, "creation_from_epoch": 0, "beta": 0.1, "lr": 1e-3, "batch_size": 7, "threshold": "adaptive"}
# Before a batch norm a bias has no gradient but rounding, of which Adam would make full steps.
_CODES = {"optimizer": "sgd", "lr": 1e-2, "epochs": 1, "batch_size": 10}
CASES: dict[str, dict] = {
    "ltc": _BUSY,
    "ltc, created in pixels": _BUSY | {"cached": False, "space": "pixels", "epochs": 1},
    "baseline, rehearsed": {"method": "baseline", "lr": 1e-3, "epochs": 1, "threshold": "rehearsed", "cached": False},
    "closed": {"method": "closed", "lr": 1e-3},
    "known-hinge": {"method": "known-hinge", "lr": 1e-3, "threshold": "adaptive"},
    "smile": {"method": "smile", "hidden": 32} | _CODES,
    "phe": {"method": "phe", "hidden": 32, "dimension": 32} | _CODES,
    "rankstat": {"method": "rankstat"} | _CODES,
    "resumed": _BUSY | {"epochs": 3},
}


# ---------------------------------------------------------------- what two processes do


def _train_together(folder: Path) -> None:
    import newfound as nf

    common = json.loads((folder / "common.json").read_text())
    torch.set_num_threads(1)
    held = {}
    for name, values in CASES.items():
        out = folder / "runs" / name
        run = nf.fit(folder / "data", out=out, devices=2, accelerator="cpu", strategy="ddp", **(common | values))
        assert (out / "config.json").is_file(), "the run is complete wherever it is given back"
        held[name] = _what_was_learnt(run)
    rank = torch.distributed.get_rank()
    held["gradients"] = _gradients(Ranks(rank, 2))
    (folder / f"process-{rank}.pickle").write_bytes(pickle.dumps(held))


def _what_was_learnt(run) -> dict:
    tensors = run.encoder.backbone.tail_state() | {f"method.{k}": v for k, v in run.method.state_dict().items()}
    return {
        "weights": {key: value.numpy().copy() for key, value in tensors.items()},
        "known": run.known,
        "path": run.threshold_path,
        "threshold": run.threshold,
        "log": run.log,
    }


def _gradients(ranks: Ranks) -> dict[str, np.ndarray]:
    """Of the contrastive loss and a head's cross-entropy, for 7 samples that the processes encode together."""
    torch.manual_seed(5)
    inputs, targets = torch.randn(7, 6), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    tail, head = nn.Linear(6, 4), nn.Linear(4, 3)
    inputs.requires_grad_(True)

    def encode(rows):
        if ranks.world == 1:
            return F.normalize(tail(rows), dim=1)
        return AllRows.apply(F.normalize(tail(OwnRows.apply(rows, ranks)), dim=1), ranks, len(rows))

    features = encode(inputs)
    (losses.supervised_contrastive(features, targets) + losses.cross_entropy(head(features), targets)).backward()
    gradients = {"tail": tail.weight.grad, "head": head.weight.grad}
    if ranks.world > 1:  # what distributed data parallelism does
        for gradient in gradients.values():
            torch.distributed.all_reduce(gradient)
            gradient /= ranks.world
    return {name: g.numpy() for name, g in (gradients | {"inputs": inputs.grad}).items()}


# ---------------------------------------------------------------- what the tests compare


class _Stopped(Exception):
    """Somebody pulled the plug."""


class _PullsThePlug(Reporter):
    """Stops a training in its second epoch of 20 images."""

    @contextmanager
    def stage(self, title, total=None):
        seen = 0

        def progress(done):
            nonlocal seen
            seen += done
            if title == "learning" and seen > 30:
                raise _Stopped

        yield progress


@pytest.fixture(scope="module")
def data(tmp_path_factory, write_folder) -> Path:
    return write_folder(tmp_path_factory.mktemp("together") / "data", kinds=4, each=5)


@pytest.fixture(scope="module")
def common(tiny_weights) -> dict:
    return {
        "backbone": "test_efficientnet", "image_size": 32, "preset": "paper", "short": True, "epochs": 2,
        "batch_size": 8, "views": 2, "weights": tiny_weights(),
    }  # fmt: skip


@pytest.fixture(scope="module")
def held(data, common, fit_tiny) -> list[dict]:
    """What each of two processes holds after training all cases; one of them goes on where one process was stopped."""
    folder = data.parent
    (folder / "common.json").write_text(json.dumps(common))
    with pytest.raises(_Stopped):
        fit_tiny(data, out=folder / "runs" / "resumed", reporter=_PullsThePlug(), **CASES["resumed"])
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run([*torchrun, __file__, str(folder)], capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return [pickle.loads((folder / f"process-{rank}.pickle").read_bytes()) for rank in range(2)]


@pytest.mark.parametrize("name", CASES)
def test_two_processes_learn_what_one_would(held, data, fit_tiny, name):
    alone, both = _what_was_learnt(fit_tiny(data, **CASES[name])), held[0][name]
    for part in ("weights", "known"):
        assert alone[part].keys() == both[part].keys()
        for key, value in alone[part].items():
            np.testing.assert_allclose(both[part][key], value, rtol=0, atol=TOLERANCE, err_msg=key)
    assert both["threshold"] == pytest.approx(alone["threshold"], abs=TOLERANCE)
    assert [step for step, _ in both["path"]] == [step for step, _ in alone["path"]]
    assert [tau for _, tau in both["path"]] == pytest.approx([tau for _, tau in alone["path"]], abs=TOLERANCE)
    assert [row.keys() for row in both["log"]] == [row.keys() for row in alone["log"]]
    for mine, theirs in zip(both["log"], alone["log"], strict=True):
        assert mine == pytest.approx(theirs, abs=1e-4)


def test_the_cases_do_learn_and_create_and_move_the_threshold(held, tiny_backbone):
    before = tiny_backbone().tail_state()
    for name in CASES:
        after = held[0][name]["weights"]
        assert max(np.abs(after[key] - value.numpy()).max() for key, value in before.items()) > 100 * TOLERANCE, name
    for name in ("ltc", "ltc, created in pixels", "resumed"):
        assert all(row["created"] > 0 for row in held[0][name]["log"])
        assert len(held[0][name]["path"]) == 3 * len(held[0][name]["log"])  # a move a batch
        assert abs(held[0][name]["path"][-1][1] - 0.7) > 100 * TOLERANCE


@pytest.mark.parametrize("name", CASES)
def test_every_process_holds_the_same_to_the_bit(held, name):
    first, second = held[0][name], held[1][name]
    for part in ("weights", "known"):
        assert {k: v.tobytes() for k, v in first[part].items()} == {k: v.tobytes() for k, v in second[part].items()}
    assert first["path"] == second["path"]
    assert first["threshold"] == second["threshold"]
    assert first["log"] == second["log"]


@pytest.mark.parametrize("weights", ["tail", "head", "inputs"])
def test_the_contrastive_gradient_is_the_one_of_a_single_process(held, weights):
    alone = _gradients(Ranks())[weights]
    assert np.abs(alone).max() > 1e-2
    for process in held:
        np.testing.assert_allclose(process["gradients"][weights], alone, rtol=0, atol=1e-6)


@given(count=st.integers(1, 60), world=st.integers(1, 9))
def test_equal_shares_put_together_are_all_rows_in_order(count, world):
    shares = [Ranks(rank, world).share(count) for rank in range(world)]
    assert len({len(share) for share in shares}) == 1
    assert np.concatenate(shares)[:count].tolist() == list(range(count))
    assert np.concatenate(shares).max() == count - 1


# ---------------------------------------------------------------- the command


def _command(data: Path, out: Path, weights: str, *more: str) -> list[str]:
    sized = ["--backbone", "test_efficientnet", "--image-size", "32", "--weights", weights, "--preset", "paper"]
    small = ["--short", "--set", "batch_size=7", "--set", "views=2", "--accelerator", "cpu", "--devices", "2"]
    train = ["--threads", "1", "train", str(data), "--out", str(out), "--strategy", "ddp"]
    return [sys.executable, "-m", "newfound", *train, *sized, *small, *more]


def test_the_command_starts_its_processes_and_one_of_them_speaks(data, tiny_weights, tmp_path, fit_tiny):
    import newfound as nf

    values = ["--set", "p_gen=1.0", "--set", "creation_from_epoch=0", "--set", "beta=0.1", "--set", "lr=0.001"]
    command = _command(data, tmp_path / "run", tiny_weights(), *values, "--epochs", "2", "--json")
    environment = os.environ | {"NEWFOUND_CACHE": str(tmp_path / "cache")}  # empty: both fill it
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["images"] == 20
    assert done.stderr == ""
    run = nf.load(tmp_path / "run")
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()
    alone = fit_tiny(data, **_BUSY)
    for key, value in alone.encoder.backbone.tail_state().items():
        # Other batches went through the trunk, and cached tokens are rounded to half precision: measured 1.2e-7.
        torch.testing.assert_close(run.encoder.backbone.tail_state()[key], value, rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("blow", ["SIGKILL", "SIGSTOP"])
def test_a_process_that_dies_or_hangs_ends_the_command_with_a_clear_error(data, tiny_weights, tmp_path, blow):
    command = _command(data, tmp_path / "run", tiny_weights(), "--epochs", "100000")
    environment = os.environ | ({"NEWFOUND_TIMEOUT": "60"} if blow == "SIGSTOP" else {})  # to start in, too
    main = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        _wait_for(lambda: (tmp_path / "run" / "checkpoint.safetensors").is_file() or main.poll() is not None)
        assert main.poll() is None, main.communicate()[1]
        (child,) = _children(main.pid)
        os.kill(child, getattr(signal, blow))
        _, err = main.communicate(timeout=30 if blow == "SIGKILL" else 120)
    finally:
        main.kill()
    assert main.returncode == 1
    assert ("ended by SIGKILL" if blow == "SIGKILL" else "not answered in time") in err
    assert "goes on from the last epoch" in err
    assert "Traceback" not in err
    _wait_for(lambda: not Path(f"/proc/{child}").exists())


def _children(parent: int) -> list[int]:
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = (tuple(map(int, line.split())) for line in listed.splitlines())
    return [child for child, its_parent in pairs if its_parent == parent]


def _wait_for(condition, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


# ---------------------------------------------------------------- what is refused, and how processes are started


@pytest.mark.parametrize("method", ["mldg", "diffgre-smile", "diffgre-phe"])
def test_methods_that_cannot_share_a_batch_say_so_before_anything_is_started(fit_tiny, data, tmp_path, method):
    with pytest.raises(SettingsError, match=f"{method} trains in one process"):
        fit_tiny(data, method=method, out=tmp_path / "run", accelerator="cpu", devices=2)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp_notebook"])
def test_other_ways_to_start_processes_are_refused(strategy):
    with pytest.raises(SettingsError, match="take auto or ddp"):
        launching.make_fabric("cpu", 2, strategy=strategy)


def test_several_machines_need_to_know_of_each_other(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    monkeypatch.setenv("MASTER_PORT", "1234")
    monkeypatch.setenv("NODE_RANK", "0")
    with pytest.raises(SettingsError, match="by MASTER_ADDR, which"):
        launching.make_fabric("cpu", 2, num_nodes=2)
    monkeypatch.setenv("MASTER_ADDR", "10.0.0.1")
    assert launching.make_fabric("cpu", 2, num_nodes=2).world_size == 4


def test_more_processes_than_were_asked_for_are_noticed(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SettingsError, match="2 processes were started"):
        launching.make_fabric("cpu", 1)


@pytest.mark.parametrize("text", ["soon", "0", "inf", "nan"])
def test_a_timeout_is_a_number_of_seconds(monkeypatch, text):
    monkeypatch.setenv("NEWFOUND_TIMEOUT", text)
    with pytest.raises(SettingsError, match="NEWFOUND_TIMEOUT"):
        launching.make_fabric("cpu", 2)


def test_the_program_to_run_again_is_the_command_or_a_script_and_never_a_tool(monkeypatch, tmp_path):
    def program(**main):
        monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(**{"__file__": None, "__spec__": None} | main))
        monkeypatch.setattr(sys, "argv", ["ignored", "--devices", "2"])
        return launching._this_program()

    again = [sys.executable, "-m", "newfound", "--devices", "2"]
    assert program(__file__=str(Path(sys.executable).parent / "newfound")) == again
    assert program(__file__="newfound/__main__.py", __spec__=SimpleNamespace(name="newfound.__main__")) == again
    script = str((tmp_path / "mine.py").resolve())
    assert program(__file__=script) == [sys.executable, script, "--devices", "2"]
    module = program(__file__=script, __spec__=SimpleNamespace(name="pack.mine"))
    assert module == [sys.executable, "-m", "pack.mine", "--devices", "2"]
    with pytest.raises(SettingsError, match="a console or notebook is not one to run again"):
        program()
    with pytest.raises(SettingsError, match=r"pytest.__main__ is not one to run again"):
        program(__file__=pytest.__file__, __spec__=SimpleNamespace(name="pytest.__main__"))


if __name__ == "__main__":
    _train_together(Path(sys.argv[1]))
