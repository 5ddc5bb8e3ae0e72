"""Runs on the Hugging Face hub: publish one with its model card, and fetch one by its name.

Only what a run is made of goes up or comes down: JSON, CSV and safetensors. Images, journals and the paths of whoever
trained it stay where they are.
"""

from __future__ import annotations

import copy
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newfound.errors import HubError, MissingFileError, SettingsError
from newfound.model_card import model_card

if TYPE_CHECKING:
    from newfound.evaluation import StreamResult
    from newfound.run import Run

_FILES = (
    "config.json", "classes.json", "model.safetensors", "known.safetensors", "prototypes.safetensors", "log.csv",
    "threshold.csv",
)  # fmt: skip
_CARD = "README.md"
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PATIENCE = 10.0  # seconds
_CLIENTS = ("httpx", "httpx2", "httpcore", "requests", "urllib3")  # what the hub's client has used over time


def is_hub_id(name: object) -> bool:
    """Whether this text could be the name of a model on the hub: org/name. A path object is none."""
    return isinstance(name, str) and _ID.fullmatch(name) is not None


def push(
    run: Run,
    repo: str,
    *,
    token: str | None = None,
    private: bool = False,
    bundle: bool = False,
    card: bool = True,
    scores: StreamResult | Mapping[str, Any] | None = None,
    datasets: Sequence[str] = (),
    license: str | None = None,
    message: str | None = None,
) -> str:
    """Publish a run in one commit, and return the address of its page.

    Args:
        repo: "org/name", or "name" for one's own; it is made if it is not there.
        token: one that may write; None takes that of `hf auth login` or HF_TOKEN.
        private: whether a repository that is made now can be seen by its owners only.
        bundle: publish the trunk's weights too. It is always done where others could not get them.
        card: write the model card; False leaves the page as it is.
        scores, datasets, license: for the card, as in `newfound.model_card.model_card`.
        message: of the commit.

    Raises:
        HubError: no token, no right to write, or no connection.
        SettingsError: a name that the hub does not allow.
        DataError: scores that are none.
    """
    client = _client()
    if token is None and client.get_token() is None:
        raise HubError(
            "publishing needs a token of yours that may write: `hf auth login` keeps one, the variable HF_TOKEN or "
            "token= gives one (https://huggingface.co/settings/tokens)."
        )
    with tempfile.TemporaryDirectory() as scratch, _in_words(repo):
        folder = _written(run, Path(scratch), bundle)
        api = client.HfApi(token=token, library_name="newfound")
        made = api.create_repo(repo, private=private, exist_ok=True)
        if card:
            page = model_card(run, made.repo_id, scores=scores, datasets=datasets, license=license)
            (folder / _CARD).write_text(page, encoding="utf-8")
        parts = [folder / name for name in (*_FILES, _CARD) if (folder / name).is_file()]
        adding = [client.CommitOperationAdd(path_in_repo=part.name, path_or_fileobj=str(part)) for part in parts]
        api.create_commit(made.repo_id, adding, commit_message=message or "A run of newfound")
        return str(made)


def download(repo: str, *, revision: str | None = None, token: str | None = None) -> Path:
    """The folder of a run on the hub, fetched as far as it is not here already.

    Args:
        repo: "org/name".
        revision: a branch, tag or commit; None is the newest.
        token: one that may read it, if it is private; None as in `push`.

    Raises:
        MissingFileError: there is no such model, or no such revision of it.
        HubError: it is not newfound's, may not be read, or there is no connection and no copy here.
    """
    client = _client()
    with _in_words(repo, revision, also=", and it is no folder here"):
        how = {"token": token, "local_files_only": not _reachable(client, repo, revision, token)}
        # The small file first: another library's model may be of any size.
        config = Path(client.hf_hub_download(repo, "config.json", revision=revision, **how))
        folder, commit = config.parent, config.parent.name  # all is of one commit, whatever is pushed meanwhile
        for name in _listed(config, repo):
            client.hf_hub_download(repo, name, revision=commit, **how)
        return folder


def _client() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise HubError("models on the hub need huggingface_hub: pip install 'newfound[hub]'.") from error
    return huggingface_hub


def _reachable(client: Any, repo: str, revision: str | None, token: str | None) -> bool:
    """Whether the hub answers. Downloads would try again for half a minute before they say that it does not."""
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        client.HfApi(token=token, library_name="newfound").model_info(repo, revision=revision, timeout=_PATIENCE)
    except OfflineModeIsEnabled:
        return False
    except Exception as error:
        if not _is_connection(error):
            raise
        return False
    return True


def _is_connection(error: Exception) -> bool:
    return type(error).__module__.partition(".")[0] in _CLIENTS


def _written(run: Run, folder: Path, bundle: bool) -> Path:
    """The run's files as others shall have them; the run itself stays as it is and where it is."""
    public = copy.copy(run)
    public.config = copy.deepcopy(run.config)
    weights = public.config["backbone"]["weights"]
    local = weights.endswith((".safetensors", ".pth", ".pt", ".bin")) or Path(weights).is_file()
    if local:
        public.config["backbone"]["weights"] = Path(weights).name
    if source := public.config.get("data", {}).get("source"):
        public.config["data"]["source"] = Path(source).name
    pipeline = public.config["settings"].get("pipeline")
    if pipeline and (Path(pipeline).is_absolute() or Path(pipeline).is_dir()):  # else an id of the hub, and no secret
        public.config["settings"]["pipeline"] = Path(pipeline).name
    return public.save(folder, bundle=bundle or local)


def _listed(config: Path, repo: str) -> list[str]:
    """The files of a run by its config. Raises HubError if the config is not one of newfound's."""
    try:
        found = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not {"newfound", "format", "method", "files"} <= set(found):
        raise HubError(f"{repo} is on the hub, but it is no model of newfound's: its config.json is another's.")
    return [name for name in _FILES if name in found["files"]]


@contextmanager
def _in_words(repo: str, revision: str | None = None, also: str = "") -> Iterator[None]:
    """Says in one sentence what the hub's client reports in many ways; `also` is what else was looked for."""
    from huggingface_hub import errors

    try:
        yield
    except errors.HFValidationError as error:
        raise SettingsError(f"{repo!r} cannot be the name of a model on the hub, which is org/name: {error}") from error
    except errors.GatedRepoError as error:
        raise HubError(f"{repo} asks its readers to agree to something first: https://huggingface.co/{repo}") from error
    except errors.RevisionNotFoundError as error:
        raise MissingFileError(f"{repo} on the hub has no branch, tag or commit {revision!r}.") from error
    except errors.RepositoryNotFoundError as error:
        raise MissingFileError(
            f"there is no {repo} on the hub, or it is private and this token, or none, may not see it{also}."
        ) from error
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise _unreachable(repo, also) from error
    except errors.EntryNotFoundError as error:
        raise HubError(f"{repo} is on the hub, but no whole model of newfound's: {_first_line(error)}") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else None
        if status in (401, 403):
            raise HubError(f"the hub does not let this token do that with {repo}: {_first_line(error)}") from error
        raise HubError(f"the hub failed at {repo}: {_first_line(error)}") from error
    except Exception as error:
        if not _is_connection(error):
            raise
        raise _unreachable(repo, also) from error


def _unreachable(repo: str, also: str) -> HubError:
    return HubError(
        f"the hub cannot be reached for {repo}{also}: look at the connection, HF_ENDPOINT and HF_HUB_OFFLINE."
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


__all__ = ["download", "is_hub_id", "push"]
