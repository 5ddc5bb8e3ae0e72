"""Clients of a service that cost little, in a process of their own, so that what they take can be told apart.

    python -m newfound.benchmarks.service_clients HOST PORT JPEG...

For every line "CLIENTS IMAGES" that it reads, so many clients post so many images between them, each one image at a
time over a connection that stays open. It answers with a line of JSON; see `Sent`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count, cycle
from pathlib import Path

_REQUEST = (
    "POST /v1/observe HTTP/1.1\r\nHost: {host}:{port}\r\nX-Newfound: 1\r\n"
    "Content-Type: multipart/form-data; boundary=newfound-bench\r\nContent-Length: {length}\r\n\r\n"
)
_BEFORE = (
    b'--newfound-bench\r\nContent-Disposition: form-data; name="images"; filename="photo.jpg"\r\n'
    b"Content-Type: image/jpeg\r\n\r\n"
)
_AFTER = b"\r\n--newfound-bench--\r\n"


@dataclass(frozen=True)
class Sent:
    """What became of some requests.

    Attributes:
        seconds: from the first request to the last answer.
        processor: seconds of a processor that the clients themselves took meanwhile.
        latencies: seconds of each request that was answered with 200.
        refused: the other answers' statuses.
    """

    seconds: float
    processor: float
    latencies: list[float]
    refused: list[int]


def posts(host: str, port: int, photos: list[bytes]) -> Iterator[bytes]:
    """Requests without end, no two with the same image: a comment in each JPEG has a number."""
    started = time.time_ns()
    for number, photo in zip(count(), cycle(photos)):
        told = b"%d-%d" % (started, number)
        image = photo[:2] + b"\xff\xfe" + (len(told) + 2).to_bytes(2, "big") + told + photo[2:]
        body = _BEFORE + image + _AFTER
        yield _REQUEST.format(host=host, port=port, length=len(body)).encode() + body


async def send(host: str, port: int, requests: Iterator[bytes], clients: int, images: int) -> Sent:
    """Post so many images. Raises OSError if the service cannot be reached or goes away."""
    left = iter(range(images))
    latencies: list[float] = []
    refused: list[int] = []

    async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in left:
            request = next(requests)
            start = time.perf_counter()
            writer.write(request)
            status = await _answer(reader)
            if status == 200:
                latencies.append(time.perf_counter() - start)
            else:
                refused.append(status)
        writer.close()

    connections = [await asyncio.open_connection(host, port) for _ in range(clients)]
    busy, start = _processor(), time.perf_counter()
    await asyncio.gather(*(client(*connection) for connection in connections))
    return Sent(time.perf_counter() - start, _processor() - busy, latencies, refused)


async def _answer(reader: asyncio.StreamReader) -> int:
    """The status of the next answer, which is read to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return int(head.split(None, 2)[1])


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(host: str, port: str, *photos: str) -> None:
    """Send as the lines of the standard input say, until it ends."""
    requests = posts(host, int(port), [Path(photo).read_bytes() for photo in photos])
    print("ready", flush=True)
    for line in sys.stdin:
        clients, images = map(int, line.split())
        sent = asyncio.run(send(host, int(port), requests, clients, images))
        print(json.dumps(asdict(sent)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
