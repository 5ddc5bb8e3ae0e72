"""Promises of `newfound journal forget` beside a service: nothing of the image is left in the run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from newfound.cli import app
from newfound.errors import DataError
from newfound.images import content_hash
from newfound.service.images_store import SIZES, erase


def forget(folder: Path, *images: object) -> str:
    result = CliRunner().invoke(app, ["journal", "forget", str(folder), *map(str, images)])
    assert result.exit_code == 0, result.stderr
    return result.stderr


def copies(folder: Path, image: bytes) -> list[Path]:
    """The files below uploads and thumbnails that are of this image."""
    return [path for name in ("images", "thumbnails") for path in (folder / name).rglob(f"{content_hash(image)}*")]


def test_a_forgotten_upload_is_erased_with_its_small_copies_and_others_stay(server, png, tmp_path):
    first, second = png(0, 1), png(3, 2)
    assert server.observe(first, second).status_code == 200
    for size in SIZES:
        for number in (0, 1):
            answer = server.client.get(f"/v1/sightings/{number}/thumbnail", params={"size": size})
            assert answer.status_code == 200
    assert len(copies(tmp_path, first)) == len(copies(tmp_path, second)) == 1 + len(SIZES)
    assert "1 image is forgotten" in forget(tmp_path, 0)
    assert copies(tmp_path, first) == []
    assert len(copies(tmp_path, second)) == 1 + len(SIZES)
    assert server.client.get("/v1/sightings/0/thumbnail").status_code == 404
    assert server.observe(first).json()["sightings"][0]["number"] == 2, "it can be seen anew"


def test_an_upload_may_be_named_by_the_file_that_is_erased(server, png, tmp_path):
    assert server.observe(png(0, 1)).status_code == 200
    (kept,) = copies(tmp_path, png(0, 1))
    assert "1 image is forgotten" in forget(tmp_path, kept)
    assert not kept.exists()


def test_an_upload_stays_as_long_as_another_sighting_is_of_it(server, png, tmp_path, as_json):
    assert server.observe(png(0, 1)).status_code == 200
    answer = server.client.post("/v1/observe", json=as_json(png(0, 1)) | {"again": True})
    assert answer.json()["sightings"][0]["number"] == 1
    forget(tmp_path, 0)
    assert len(copies(tmp_path, png(0, 1))) == 1
    forget(tmp_path, 1)
    assert copies(tmp_path, png(0, 1)) == []


def test_what_cannot_be_erased_is_said_and_not_forgotten_either(server, png, tmp_path, monkeypatch):
    assert server.observe(png(0, 1)).status_code == 200

    def refused(path: Path, missing_ok: bool) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refused)
        result = CliRunner().invoke(app, ["journal", "forget", str(tmp_path), "0"])
        assert result.exit_code != 0
        with pytest.raises(DataError, match=r"cannot delete .*Permission denied"):
            erase(tmp_path, [bytes.fromhex(content_hash(png(0, 1)))])
    assert not server.service.journal.sightings([0])[0].forgotten
    forget(tmp_path, 0)
    assert copies(tmp_path, png(0, 1)) == []
