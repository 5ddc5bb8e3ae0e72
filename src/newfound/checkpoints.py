"""Checkpoints of a training in progress: tensors as safetensors, the rest as JSON, replaced as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from newfound.errors import RunError, UnfinishedError
from newfound.files import put_in_place
from newfound.logs import write_log


class Checkpoint:
    """The last finished epoch of a training.

    Args:
        folder: where the two files are kept.
        fingerprint: what the training depends on (settings, data, seed, backbone); a checkpoint with another
            fingerprint belongs to another training and is refused.
    """

    def __init__(self, folder: Path, fingerprint: dict) -> None:
        self.folder, self.fingerprint = folder, json.loads(json.dumps(fingerprint))
        self.path = folder / "checkpoint.safetensors"

    def save(self, learner, optimizer, trained) -> None:
        """Write to a new file, then put it in place of the old one: a crash leaves the old or the new, never half."""
        tensors = {f"tail.{k}": v for k, v in learner.backbone.tail_state().items()}
        tensors |= {f"method.{k}": v for k, v in learner.method.state_dict().items()}
        for index, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{k}": torch.as_tensor(v) for k, v in state.items()}
        info = {
            "fingerprint": self.fingerprint,
            "log": trained.log,
            "threshold_path": trained.threshold_path,
            "scalars": learner.method.scalars(),
        }
        part = self.path.with_suffix(".part")
        # Copies: safetensors refuses tensors that share memory, and the learner's must not be held.
        copies = {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            save_file(copies, part, {"info": json.dumps(info)})
            put_in_place(part, self.path)
            write_log(self.folder, trained.log)
        except (OSError, SafetensorError) as error:
            part.unlink(missing_ok=True)  # a full disk needs the room
            raise RunError(
                f"the checkpoint cannot be written to {self.folder} ({error}); make room and train again with the same "
                f"settings: it goes on from the last epoch that was saved."
            ) from error

    def check(self) -> bool:
        """Whether the folder holds this training, unfinished. Raises UnfinishedError if it holds another."""
        if not self.path.is_file():
            return False
        self._compare(self._read()[0])
        return True

    def _compare(self, info: dict) -> None:
        differing = [k for k in self.fingerprint if info["fingerprint"].get(k) != self.fingerprint[k]]
        if differing:
            raise UnfinishedError(
                f"{self.folder} holds an unfinished training that differs in {', '.join(sorted(differing))}. "
                f"Choose another folder, or pass overwrite=True (--overwrite) to start afresh."
            )

    def restore(self, learner, optimizer, trained, fabric=None) -> int:
        """Put the learner back to its last epoch; returns the epoch to go on with (0 without a checkpoint).

        Args:
            fabric: of several processes the first reads for all, as the folder may be on its machine alone.
        """
        leads = fabric is None or fabric.is_global_zero
        found = self._read() if leads and self.path.is_file() else None
        if found is not None:
            self._compare(found[0])
        if fabric is not None:
            found = fabric.broadcast(found)
        if found is None:
            return 0
        info, tensors = found
        learner.backbone.model.load_state_dict(_part(tensors, "tail."), strict=False)
        learner.method.load_state_dict(_part(tensors, "method."))
        learner.method.load_scalars(info["scalars"])
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in _part(tensors, "optimizer.").items():
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        trained.log = info["log"]
        trained.threshold_path = [tuple(point) for point in info["threshold_path"]]
        return len(trained.log)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def _read(self) -> tuple[dict, dict[str, Tensor]]:
        from safetensors import safe_open

        try:
            with safe_open(self.path, "pt") as file:
                info = json.loads(file.metadata()["info"])
            return info, load_file(self.path)
        except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
            raise UnfinishedError(
                f"{self.path} is damaged ({error}); pass overwrite=True (--overwrite) to train afresh."
            ) from error


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
