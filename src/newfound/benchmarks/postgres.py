"""A PostgreSQL server of our own, for measurements and tests: started on a free port, gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from newfound.errors import SettingsError


def binaries() -> Path | None:
    """The newest server's programs: where Debian puts them, or on the path; None if there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


@contextmanager
def server(*, durable: bool = True) -> Iterator[str]:
    """The URL of a server that runs in a temporary folder; its only user is trusted.

    Args:
        durable: whether a commit waits for the disk. Tests that kill clients and never the server need not.

    Raises SettingsError if no server is installed.
    """
    programs = binaries()
    if programs is None:
        raise SettingsError("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="nf"))  # short: a socket's path has at most 107 characters
    as_user: list[str] = []
    if os.getuid() == 0:  # the server refuses to run as root
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")

    def run(program: str, *options: str) -> None:
        command = [*as_user, str(programs / program), "-D", str(folder / "data"), *options]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = f"-p {port} -k {folder} -h 127.0.0.1 -c fsync={'on' if durable else 'off'} -c max_connections=50"
    try:
        run("initdb", "-A", "trust", "-U", "tester", "-E", "UTF8", "--locale=C", "--no-sync")
        run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", settings, "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
