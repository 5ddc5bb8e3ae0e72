"""Ask a person for names where a name is worth most: of discovered categories, the largest and most doubtful first.

    newfound discover runs/birds incoming/
    python examples/active_naming.py runs/birds                       # shows files, asks, goes on until you stop
    python examples/active_naming.py runs/birds --answers labels.csv  # path,label: a table answers in your place

One answer settles all images of a category. A name that another category has already merges the two; an empty line
leaves a category for later; "-" marks it as junk. Every answer is an event of the journal: `newfound categories
runs/birds undo` takes the last one back.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from newfound.curator import Curator
from newfound.journal import Journal
from newfound.sightings import Category, Sighting

SHOWN = 5  # images of a category that are shown with a question
UNNAMED = "new-"  # how the names of categories begin that nobody has named
Ask = Callable[[Category, list[Sighting]], str]


def main(arguments: Sequence[str] | None = None) -> float:
    """Ask, and return which share of the journal's images is in categories with a name then."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run with a journal")
    parser.add_argument("--answers", metavar="FILE.csv", help="path,label of images: answers in the place of a person")
    parser.add_argument("--questions", type=int, default=20, help="how many at most")
    asked = parser.parse_args(arguments)
    ask = by_table(asked.answers) if asked.answers else by_person

    with Journal.open(f"{asked.run}/journal.db") as journal:
        curator = Curator(journal, actor="active_naming.py")
        passed: set[int] = set()
        for _ in range(asked.questions):
            category = worth_most(curator, passed)
            if category is None:
                break
            name = ask(category, curator.sightings(category.id, limit=SHOWN)).strip()
            passed.add(category.id)
            settle(curator, category, name)
            share = named_share(curator)
            print(f"{category.name} ({category.count} images): {name or 'later'}; {share:.0%} of images have a name")
        return named_share(curator)


def worth_most(curator: Curator, passed: set[int]) -> Category | None:
    """The category without a name whose name would settle most: images count, and doubtful ones count double."""
    waiting = [c for c in discovered(curator) if c.name.startswith(UNNAMED) and c.id not in passed and c.count]
    return max(waiting, key=lambda c: (c.count + doubt(curator, c), -c.id), default=None)


def doubt(curator: Curator, category: Category) -> float:
    """How many of its images are expected to be in the wrong place, as far as a run knows."""
    return sum(1 - s.probability for s in curator.sightings(category.id) if s.probability is not None)


def settle(curator: Curator, category: Category, name: str) -> None:
    """Do what an answer means."""
    if not name:
        return
    if name == "-":
        curator.ignore(category.id)
        return
    same = [c.id for c in curator.categories() if c.name == name]
    if same:
        curator.merge([same[0], category.id])
    else:
        curator.rename(category.id, name)


def discovered(curator: Curator) -> list[Category]:
    return [c for c in curator.categories() if c.origin == "discovered" and not c.ignored]


def named_share(curator: Curator) -> float:
    """Of all images in the journal, those in categories with a name: taught, given, or merged into one that has one."""
    counts = [(c.count, c.origin == "known" or not c.name.startswith(UNNAMED)) for c in curator.categories()]
    total = sum(count for count, _ in counts)
    return sum(count for count, named in counts if named) / total if total else 1.0


def by_person(category: Category, sightings: list[Sighting]) -> str:
    print(f"\n{category.name}: {category.count} images, such as")
    for sighting in sightings:
        print(f"  {sighting.image}")
    try:
        return input("What is it? (empty: later, -: junk) ")
    except EOFError:
        return ""


def by_table(path: str) -> Ask:
    """The label that most of the images shown have; paths are told from the table's folder."""
    folder = Path(path).resolve().parent
    with open(path, newline="", encoding="utf-8") as file:
        labels = {str(folder / row["path"]): row["label"] for row in csv.DictReader(file)}

    def ask(category: Category, sightings: list[Sighting]) -> str:
        votes = Counter(labels[str(s.image)] for s in sightings if str(s.image) in labels)
        return votes.most_common(1)[0][0] if votes else ""

    return ask


if __name__ == "__main__":
    main()
