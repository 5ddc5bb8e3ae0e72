"""A process that appends to a journal for as long as it lives: python appending.py WHERE WORKER [BLOCKS].

After each block that is committed it prints the numbers of its sightings, first and last.
"""

from __future__ import annotations

import sys
import time

from newfound.journal import Journal, SightingRow

ROWS = 20


def main(where: str, worker: str, blocks: int) -> None:
    journal = Journal.open(where, wait=30)
    journal.begin("a model", {}, b"genesis")
    print("ready", flush=True)
    for _ in range(blocks):
        with journal.writing() as writer:
            first = writer.position().sightings
            writer.append(
                [
                    SightingRow(
                        first + i, worker, None, 0, 0, False, 0.5, 0.5, None, None, (), b"f" * 1024, 1, time.time()
                    )
                    for i in range(ROWS)
                ]
            )
        print(first, first + ROWS - 1, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10**9)
