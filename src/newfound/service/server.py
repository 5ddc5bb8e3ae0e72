"""Running the application with uvicorn."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from newfound.errors import SettingsError
from newfound.service.app import create_app
from newfound.service.core import Service


class Server(uvicorn.Server):
    """A server that ends its live streams when it is asked to stop; others it lets finish."""

    def __init__(self, service: Service, port: int) -> None:
        config = uvicorn.Config(
            create_app(service), host=service.settings.host, port=port, log_level="warning", access_log=False,
            server_header=False, timeout_graceful_shutdown=30, timeout_keep_alive=30,
        )  # fmt: skip
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.follower.end_streams()
        super().handle_exit(sig, frame)


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound, so that the address is known, and taken, before the model is loaded.

    Raises:
        SettingsError: The address is taken, or is none of this machine's.
    """
    try:
        family = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
        # With its protocol, or asyncio would let the end of an answer wait for the client to confirm the beginning.
        bound = socket.socket(*family[:3])
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(family[4])
    except (OSError, OverflowError) as error:
        raise SettingsError(f"cannot listen on {host} port {port}: {getattr(error, 'strerror', error)}.") from error
    return bound


@contextmanager
def in_a_thread(service: Service) -> Iterator[str]:
    """The address, on this machine, of a service that runs in a thread until the block is left."""
    with listen("127.0.0.1", 0) as bound:
        bound.listen()  # who connects before it is ready waits
        server = Server(service, 0)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            service.follower.end_streams()
            server.should_exit = True
            thread.join()
