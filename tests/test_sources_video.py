"""Frames of a video: so many a second, named after their time, and errors in plain words."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image

from newfound.errors import SettingsError
from newfound.images import open_image
from newfound.sources import from_video, is_live
from newfound.sources.video import without_password

av = pytest.importorskip("av", reason="newfound[video] is not installed")


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Three seconds at ten frames a second: red, then green, then blue."""
    path = tmp_path_factory.mktemp("video") / "clip.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for index in range(30):
            pixels = np.zeros((48, 64, 3), np.uint8)
            pixels[..., index // 10] = 220
            for packet in stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def test_so_many_frames_a_second_are_given_and_named_after_their_time(clip):
    found = list(from_video(str(clip), fps=1))
    assert [item.name for item in found] == [f"{clip}#t={t}.000" for t in range(3)]
    assert [int(np.asarray(item.image).mean((0, 1)).argmax()) for item in found] == [0, 1, 2]
    assert open_image(found[0].image).size == (64, 48)


@pytest.mark.parametrize(("fps", "count"), [(0.5, 2), (2, 6), (10, 30), (1000, 30), (4, 12)])
def test_a_frame_rate_gives_that_many_frames_and_never_one_twice(clip, fps, count):
    names = [item.name for item in from_video(str(clip), fps=fps)]
    # 3 s at 4 a second: due at 0, 0.25, ..., 2.75, and the first frame from then on is taken: 12.
    assert len(names) == len(set(names)) == count


def test_a_video_that_is_cut_off_not_there_or_none_is_one_error(clip, tmp_path):
    cut, text = tmp_path / "cut.mp4", tmp_path / "text.mp4"
    cut.write_bytes(clip.read_bytes()[:1000])
    text.write_text("no video")
    for path in (cut, text, tmp_path / "none.mp4"):
        (item,) = from_video(str(path), fps=1)
        assert item.error.startswith(f"cannot read the video {path}: ")


@pytest.mark.parametrize("ending", ["png", "jpg", "webp", "bmp", "tiff", "gif"])
def test_a_still_picture_is_no_video_and_that_is_said(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    Image.new("RGB", (64, 48), (220, 40, 30)).save(path)
    (item,) = from_video(str(path), fps=1)
    assert item.error.startswith(f"{path} is a still picture and no video: ")
    assert item.error.endswith("without --video")


def test_pictures_that_move_and_videos_of_one_frame_are_videos(tmp_path):
    moving, short = tmp_path / "moving.gif", tmp_path / "short.mp4"
    red, blue = (Image.new("RGB", (64, 48), colour) for colour in ("red", "blue"))
    red.save(moving, save_all=True, append_images=[blue], duration=1000)
    assert [item.name for item in from_video(str(moving), fps=1)] == [f"{moving}#t=0.000", f"{moving}#t=1.000"]
    with av.open(str(short), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        container.mux([*stream.encode(av.VideoFrame.from_image(red)), *stream.encode()])
    assert [item.name for item in from_video(str(short), fps=1)] == [f"{short}#t=0.000"]


def test_sound_alone_has_no_pictures(tmp_path):
    path = tmp_path / "sound.wav"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        for packet in stream.encode(frame):
            container.mux(packet)
    (item,) = from_video(str(path), fps=1)
    assert "no pictures" in item.error


def test_frames_end_when_asked_to_stop(clip):
    seen = []
    for item in from_video(str(clip), fps=10, asked=lambda: len(seen) == 3):
        seen.append(item)
    assert len(seen) == 3


def test_numbers_and_live_addresses_are_cameras_and_files_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_live("0")
    assert is_live("rtsp://door/1")
    assert is_live("video=Integrated Camera")
    assert not is_live("clip.mp4")
    assert not is_live("https://example.org/clip.mp4")
    (tmp_path / "0").touch()
    assert not is_live("0")


def test_a_camera_that_is_not_there_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (item,) = from_video("99", fps=1)
    assert item.error.startswith("cannot read the video 99: ")


def test_passwords_stay_out_of_names():
    assert without_password("rtsp://me:secret@door/1") == "rtsp://door/1"
    assert without_password("rtsp://me:s@cret@door/1@2") == "rtsp://door/1@2"
    assert without_password("clips/a@b.mp4") == "clips/a@b.mp4"


def test_without_pyav_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(SettingsError, match=r"newfound\[video\]"):
        next(from_video("clip.mp4", fps=1))
