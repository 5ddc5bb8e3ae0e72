"""Frames of videos and cameras, so many a second."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from types import ModuleType
from typing import Any

from newfound.errors import SettingsError
from newfound.sources.items import Item

_LIVE = re.compile(r"(rtsps?|rtmps?|rtp|udp|srt)://", re.IGNORECASE)
_CAMERA = re.compile(r"\d+|video=.+")
_PATIENCE = 15.0  # seconds that a camera or a server may take to open, or to send the next frame


def is_live(source: str) -> bool:
    """Whether this is a camera's number or name, or the address of a live stream; a file of that name is a file."""
    return not os.path.exists(source) and bool(_LIVE.match(source) or _CAMERA.fullmatch(source))


def from_video(source: str, *, fps: float, asked: Callable[[], bool] = lambda: False) -> Iterator[Item]:
    """Upright frames of a video, at most `fps` of each second, until it ends or `asked` says to stop.

    They are named after the time in the video, as clip.mp4#t=12.480, or after the time of day for what is live, as
    rtsp://door/1#time=2026-01-31T12:00:00.480Z, without the password. A video that cannot be opened, or is damaged
    further on, gives an item with the error; so does a still picture, whose answer would be under another name.

    Args:
        source: a video file, the URL of one or of a live stream, the number of a camera (0), or on Windows its name
            (video=Integrated Camera).

    Raises SettingsError if PyAV is not installed, or for a camera's number on Windows.
    """
    av, name, live = _pyav(), without_password(source), is_live(source)
    target, form = _target(source)
    try:
        with av.open(target, format=form, timeout=_PATIENCE if live or "://" in source else None) as container:
            if not container.streams.video:
                yield Item(None, name, error=f"there are no pictures in {name}")
                return
            if _is_still(container):
                why = f"{name} is a still picture and no video: give images to a command of their own, without --video"
                yield Item(None, name, error=why)
                return
            yield from _sampled(av, container, name, fps, live, asked)
    except (av.error.FFmpegError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        yield Item(None, name, error=f"cannot read the video {name}: {reason}")


def without_password(source: str) -> str:
    """The address as it may be shown and kept."""
    return re.sub(r"^(\w+://)[^/]*@", r"\1", source)  # to the last @: a password may hold one


def _sampled(
    av: ModuleType, container: Any, name: str, fps: float, live: bool, asked: Callable[[], bool]
) -> Iterator[Item]:
    stream = container.streams.video[0]
    stream.thread_type = "AUTO"
    start, due, damaged = None, 0.0, 0
    for packet in container.demux(stream):
        if asked():
            return
        try:
            frames = packet.decode()
        except av.error.InvalidDataError:  # one bad packet; what follows may be fine
            damaged += 1
            continue
        for frame in frames:
            if frame.time is None:
                continue
            start = frame.time if start is None else start
            at = frame.time - start
            if at < due - 1e-6:  # times are whole ticks of the stream's clock
                continue
            due = (int(at * fps + 1e-6) + 1) / fps
            image = frame.to_image()
            if frame.rotation:  # how the camera was held; degrees counterclockwise, as Pillow counts them
                image = image.rotate(frame.rotation, expand=True)
            image.filename = f"{name}#{_moment(at, live)}"  # where Pillow keeps what an image was opened from
            yield Item(image, image.filename)
    if damaged or start is None:
        what = f"{damaged} parts of it are damaged" if damaged else "it has no frame"
        yield Item(None, name, error=f"cannot read all of the video {name}: {what}")


def _is_still(container: Any) -> bool:
    """Whether this is a picture, by what FFmpeg calls it (png_pipe), or by its one frame without a duration (GIF)."""
    return container.format.name.endswith("_pipe") or (
        container.streams.video[0].frames == 1 and container.duration is None
    )


def _moment(at: float, live: bool) -> str:
    if not live:
        return f"t={at:.3f}"
    return "time=" + datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _target(source: str) -> tuple[str, str | None]:
    """What PyAV is to open, and as what kind of device."""
    if not is_live(source) or _LIVE.match(source):
        return source, None
    if source.startswith("video="):
        return source, "dshow"
    if sys.platform == "win32":
        raise SettingsError(f"on Windows a camera has a name and no number: give 'video=NAME' instead of {source}.")
    return (source, "avfoundation") if sys.platform == "darwin" else (f"/dev/video{source}", "v4l2")


def _pyav() -> ModuleType:
    try:
        import av
        import av.error
    except ImportError:
        raise SettingsError("videos need PyAV, which is not installed: pip install 'newfound[video]'") from None
    return av
