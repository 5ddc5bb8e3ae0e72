"""Images from elsewhere: only from the prefixes that an operator allows, without redirects, and not without end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

import httpx

from newfound.errors import ImageError, SettingsError

_PORTS = {"http": 80, "https": 443}
_TIMEOUT = httpx.Timeout(15.0, connect=5.0)
LONGEST = 60.0  # seconds for the images of a request: a server that sends byte after byte would never time out


@dataclass(frozen=True)
class Prefix:
    """A place that images may come from: scheme, host and port, and the folder they must be in."""

    scheme: str
    host: str
    port: int
    path: str

    @classmethod
    def parse(cls, text: str) -> Prefix:
        """Raises SettingsError for what is no http or https address."""
        parts = _split(text)
        if parts is None or parts.query or parts.fragment:
            raise SettingsError(
                f"{text!r} is not a prefix of addresses: give one such as https://photos.example/birds/"
            )
        path = unquote(parts.path) or "/"
        return cls(parts.scheme, str(parts.hostname), parts.port or _PORTS[parts.scheme], path.rstrip("/") + "/")

    def covers(self, url: str) -> bool:
        """Whether an address is below this prefix, however it is spelled."""
        parts = _split(url)
        if parts is None:
            return False
        there = (parts.scheme, str(parts.hostname), parts.port or _PORTS[parts.scheme])
        return there == (self.scheme, self.host, self.port) and unquote(parts.path).startswith(self.path)


def _split(url: str) -> SplitResult | None:
    """An address in parts, its host in lower case; None if servers might read it in another way than it is checked."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    if not usable or "@" in parts.netloc or "\\" in url or not url.isascii() or not url.isprintable() or " " in url:
        return None
    # Dots that are encoded, once or twice, could lead out of the folder on the server.
    decoded = unquote(unquote(parts.path))
    return None if "\\" in decoded or {"..", "."} & set(decoded.split("/")) else parts


def fetch(url: str, allowed: tuple[Prefix, ...], limit: int, seconds: float = LONGEST) -> bytes:
    """The bytes at an address.

    Args:
        limit: bytes that there may be, and `seconds` that they may take to arrive: what a request has left of either.

    Raises:
        ImageError: It is not below an allowed prefix, does not answer with 200, takes longer, or has more bytes.
    """
    if not any(prefix.covers(url) for prefix in allowed):
        raise ImageError("this address is not below a prefix that the operator allows (--allow-url)")
    data, until = bytearray(), time.monotonic() + seconds
    late = ImageError(f"what is at the addresses of this request took more than {LONGEST:g} s to arrive")
    if seconds <= 0:
        raise late
    try:
        with (
            httpx.Client(follow_redirects=False, timeout=_TIMEOUT, trust_env=False) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code != 200:
                raise ImageError(f"the address answered with {answer.status_code}; redirects are not followed")
            for piece in answer.iter_bytes():
                data += piece
                if len(data) > limit:
                    raise ImageError(f"what is at the address is larger than the {limit:,} bytes this request has left")
                if time.monotonic() > until:
                    raise late
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ImageError(f"the address could not be read ({type(error).__name__})") from error
    return bytes(data)
