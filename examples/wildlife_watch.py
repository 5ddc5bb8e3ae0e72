"""Watch the folder that wildlife cameras write to; say which animal came by, and call out when one is of a new kind.

    newfound train labelled/ --out runs/animals                 # one folder a species
    python examples/wildlife_watch.py runs/animals cameras/     # until Ctrl-C
    python examples/wildlife_watch.py runs/animals cameras/ --megadetector results.json --once

Cameras write to folders of their own below cameras/. With --megadetector, the animals that MegaDetector found are
looked at in place of whole frames, again whenever the file was written anew; nothing is entered twice. What is found is
kept in the run's journal: `newfound serve runs/animals` shows it, also while this script is running.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import newfound as nf
from newfound.crops import parted
from newfound.sources import FolderWatch, Item, from_megadetector

PAUSE = 2.0  # seconds between two looks


def main(arguments: Sequence[str] | None = None) -> Counter[tuple[str, str]]:
    """Watch, and return how often which animal came by which camera."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="what `newfound train` wrote")
    parser.add_argument("folder", type=Path, help="where cameras write to")
    parser.add_argument("--megadetector", type=Path, metavar="FILE.json", help="look at its detections")
    parser.add_argument("--once", action="store_true", help="look at what is there, and stop")
    asked = parser.parse_args(arguments)

    visits: Counter[tuple[str, str]] = Counter()
    with nf.load(asked.run).discoverer(f"{asked.run}/journal.db") as discoverer:
        try:
            for items in arrivals(asked.folder, asked.megadetector, once=asked.once):
                for camera, sighting in looked_at(discoverer, items):
                    visits[camera, sighting.name] += 1
                    print(f"{camera:12} {sighting.name:20} {called(sighting)}", flush=True)
        except KeyboardInterrupt:
            print()
    for (camera, name), count in sorted(visits.items()):
        print(f"{camera:12} {name:20} {count:5} times")
    return visits


def arrivals(folder: Path, detections: Path | None, *, once: bool) -> Iterator[list[Item]]:
    """What there is to look at, whenever there is something."""
    watch = FolderWatch([folder], settle=0.0 if once else 1.0)  # a file that is still being written is not looked at
    version = None
    while True:
        if detections is None:
            items = watch.poll()
        elif detections.exists() and (written := detections.stat().st_mtime_ns) != version:
            items, version = list(from_megadetector(detections, [str(folder)], pad=0.1)), written
        else:
            items = []
        if items:
            yield items
        if once:
            return
        time.sleep(PAUSE)


def looked_at(discoverer: nf.Discoverer, items: list[Item]) -> Iterator[tuple[str, nf.Sighting]]:
    """The camera and the sighting of each item that can be read and was not seen before."""
    for item in items:
        if item.error:
            print(f"left out: {item.error}")
    readable = [item for item in items if not item.error]
    for item, sighting in zip(readable, discoverer.observe([item.image for item in readable]), strict=True):
        if sighting.error:
            if item.try_later is None or not item.try_later(item):  # else it may not have been complete yet
                print(f"left out: {sighting.error}")
        elif not sighting.repeated:
            yield Path(parted(item.name)[0]).parent.name, sighting


def called(sighting: nf.Sighting) -> str:
    """How sure the answer is, in words."""
    if sighting.is_new:
        return f"NEW: nothing like it before ({sighting.image})"
    if sighting.score < sighting.cut:
        return "doubtful: a second one like it would be a category of its own"
    return "" if sighting.probability is None else f"{sighting.probability:.0%} sure"


if __name__ == "__main__":
    main()
