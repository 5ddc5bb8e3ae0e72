"""What an operator decides about a service: who may do what, and how much of it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

from newfound.errors import SettingsError
from newfound.service.urls import Prefix

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one request may ask for, and how many may wait.

    Attributes:
        body: bytes of a request, those at its addresses included.
        images: images in a request.
        reads: requests whose images are in memory at the same time, on their way in; others wait with theirs unread.
        seconds: how long a request may take; the live stream has no end.
        patience: seconds that a body is waited for in all, and one more for every 4 KiB of it that came.
        queue: images of all clients that wait for the encoder.
        batch: images that are encoded and committed together.
        wait: seconds that the first image of a batch waits for others that are on their way.
    """

    body: int = 64 * MEGABYTE
    images: int = 64
    reads: int = 64
    seconds: float = 60.0
    patience: float = 5.0
    queue: int = 512
    batch: int = 64
    wait: float = 0.01


@dataclass(frozen=True)
class Settings:
    """Where a service listens and whom it lets in.

    Attributes:
        host: the address it is bound to.
        token: what gives write rights; None lets everybody on this machine write.
        read_token: what gives read rights.
        urls: where images may be fetched from.

    Raises:
        SettingsError: An address that others can reach without a token, or tokens that cannot be told apart.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    read_token: str | None = None
    urls: tuple[Prefix, ...] = ()
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.host):
            raise SettingsError(
                f"{self.host} can be reached from other machines: give a token with --token or NEWFOUND_TOKEN."
            )
        if self.read_token is not None and self.token is None:
            raise SettingsError("a token for reading needs one for writing beside it: give --token too.")
        for name in ("token", "read_token"):
            given = getattr(self, name)
            if given is not None and not (given.isascii() and given.isprintable() and given.strip() == given != ""):
                raise SettingsError(f"{name} must be printable ASCII text without spaces around it, and not empty.")
        if self.token is not None and self.token == self.read_token:
            raise SettingsError("the tokens for reading and for writing are the same: give two.")


def is_loopback(host: str) -> bool:
    """Whether only programs on this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
