"""What people put right in a tool comes back as what they meant, and a second time as nothing."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from newfound.carrying import carry
from newfound.curator import Curator
from newfound.discovery import PrototypeDictionary
from newfound.errors import DataError
from newfound.journal import Journal
from newfound.labels import export_labels, review_labels


@pytest.fixture
def told(birds, curator, tmp_path):
    """told({number: label}): give a CSV file back with these labels changed; returns the lines, and applies them."""
    path = tmp_path / "labels.csv"

    def give(changes: dict[int, str], *, drop: tuple[str, ...] = ()) -> list[str]:
        export_labels(curator(), "csv", path, overwrite=True)
        rewrite(path, changes, drop)
        return again()

    def again() -> list[str]:
        one = curator("csv")
        review = review_labels(one, "csv", path)
        review.apply(one)
        return review.lines()

    give.again = again
    return give


def rewrite(path: Path, changes: dict[int, str], drop: tuple[str, ...] = ()) -> None:
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["label"] = changes.get(int(row["sighting"]), row["label"])
    columns = [name for name in rows[0] if name not in drop]
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, columns, extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)


def kinds(curator) -> list[str]:
    return [event.kind for event in curator().events()]


def test_a_file_that_nobody_changed_changes_nothing(told, curator):
    assert told({}) == []
    assert kinds(curator) == []


def test_a_category_all_of_whose_images_got_a_new_label_is_renamed(told, curator, standing):
    assert told(dict.fromkeys((3, 4, 5), "stork")) == ["rename category 2 (new-1) to stork"]
    assert kinds(curator) == ["renamed"]
    assert curator().category(2).name == "stork"


def test_some_images_with_a_new_label_are_split_off(told, curator, standing):
    assert told({4: "stork"}) == ["split 1 image off 2 as a new category stork"]
    assert kinds(curator) == ["split", "renamed"]
    assert [standing()[n] for n in (3, 4, 5)] == ["new-1", "stork", "new-1"]


def test_images_of_several_categories_make_one_new_category(told, standing):
    told({0: "stork", 4: "stork", 6: "stork"})
    assert [n for n, name in standing().items() if name == "stork"] == [0, 4, 6]


def test_an_image_with_the_label_of_another_category_is_moved(told, curator, standing):
    assert told({1: "owl"}) == ["move 1 image from 0 to 1 (owl)"]
    assert kinds(curator) == ["moved"]
    assert standing()[1] == "owl"


def test_a_category_all_of_whose_images_got_the_label_of_another_is_merged(told, curator):
    assert told(dict.fromkeys((6, 7), "new-1")) == ["merge 3 into 2 (new-1)"]
    assert kinds(curator) == ["merged"]
    assert curator().category(3).id == 2


def test_the_label_of_the_younger_of_two_is_the_name_of_what_they_become(told, curator):
    told(dict.fromkeys((6, 7), "tern"))
    told(dict.fromkeys((3, 4, 5), "tern"))
    assert {curator().category(2).name, curator().category(3).name} == {"tern"}


def test_two_whole_categories_with_one_new_label_become_one(told, curator):
    told(dict.fromkeys((3, 4, 5, 6, 7), "stork"))
    assert (curator().category(3).id, curator().category(3).name, curator().category(3).count) == (2, "stork", 5)


def test_a_category_that_falls_apart_is_not_merged_with_what_part_of_it_became(told, standing):
    told({6: "owl", 7: "heron"})
    assert (standing()[6], standing()[7]) == ("owl", "heron")


def test_categories_that_swap_their_images_stay_two(told, standing):
    told({3: "new-2", 4: "new-2", 5: "new-2", 6: "new-1", 7: "new-1"})
    assert [standing()[n] for n in range(3, 8)] == ["new-2", "new-2", "new-2", "new-1", "new-1"]


def test_a_known_class_is_not_renamed_because_its_images_were_something_else(told, curator, standing):
    told({2: "tern"})
    assert curator().category(1).name == "owl"
    assert standing()[2] == "tern"


def test_a_known_class_is_not_merged_away(told, curator, standing):
    told({2: "heron"})
    assert curator().category(1).id == 1
    assert standing()[2] == "heron"


def test_what_came_after_the_file_was_made_goes_along_with_a_renamed_category(told, curator, observe, photo, tmp_path):
    path = tmp_path / "labels.csv"
    export_labels(curator(), "csv", path)
    assert observe((photo("late.png"), 4)) == [2]
    rewrite(path, dict.fromkeys((3, 4, 5), "stork"))
    # The last sighting that the file speaks of is 7, so it is known that 8 came later.
    assert told.again() == ["rename category 2 (new-1) to stork"]
    assert curator().category(2).count == 4


def test_an_old_file_does_not_take_back_what_was_done_since(told, curator, tmp_path):
    path = tmp_path / "labels.csv"
    export_labels(curator(), "csv", path)
    curator().rename(2, "stork")
    curator().move([0], 1)
    assert told.again() == []
    rewrite(path, {}, drop=("was",))  # even a tool that forgets what it was given does not undo a name
    assert [line for line in told.again() if "rename" in line] == []


def test_images_are_found_by_their_paths_where_a_tool_drops_the_numbers(told, standing):
    told({4: "stork"}, drop=("sighting", "was", "category"))
    assert standing()[4] == "stork"


def test_images_that_the_journal_does_not_have_are_named(curator, birds, tmp_path):
    (tmp_path / "labels.csv").write_text("path,label\nnowhere/9.png,owl\ncam1/1.png,owl\n")
    review = review_labels(curator(), "csv", tmp_path / "labels.csv")
    assert (review.told, review.unknown) == (1, ["nowhere/9.png"])


def test_a_file_of_another_journal_is_refused(curator, birds, tmp_path):
    (tmp_path / "labels.csv").write_text("path,label,sighting\ncam1/1.png,owl,5\n")
    with pytest.raises(DataError, match="another journal"):
        review_labels(curator(), "csv", tmp_path / "labels.csv")


def test_who_put_it_right_is_on_record_and_can_be_undone(told, curator):
    told({1: "owl"})
    assert curator().events()[-1].actor == "csv"
    curator("csv").undo()
    assert curator().category(0).count == 2


_labels = st.dictionaries(st.integers(0, 7), st.sampled_from(["heron", "owl", "stork", "tern", 3, 5, 6]))


@settings(
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],  # every example is several journals: too slow to make smaller
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rounds=st.lists(_labels, min_size=1, max_size=3))
def test_whatever_is_told_is_so_afterwards_and_a_second_time_changes_nothing(rounds, birds, run, tmp_path):
    (copy := tmp_path / "copy.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(run / "journal.db")) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    path = tmp_path / "labels.csv"
    with Journal.open(copy) as journal:
        curator = Curator(journal)
        for changes in rounds:
            before = names_in(curator)
            labels = {n: before[label] if isinstance(label, int) else label for n, label in changes.items()}
            export_labels(curator, "csv", path, overwrite=True)
            rewrite(path, labels)
            review_labels(curator, "csv", path).apply(curator)
            assert names_in(curator) == before | labels
            assert review_labels(curator, "csv", path).lines() == []


def names_in(curator: Curator) -> dict[int, str]:
    return {sighting.number: sighting.name for sighting in curator.sightings()}


@pytest.mark.parametrize(("name", "then"), [(" stork ", "stork"), ("", "new-1"), ("  ", "new-1")])
def test_spaces_around_the_name_of_a_category_do_not_count_and_no_name_says_nothing(
    name, then, birds, curator, tmp_path
):
    path = tmp_path / "labels.json"
    export_labels(curator(), "coco", path)
    data = json.loads(path.read_text())
    data["categories"][2]["name"] = name
    path.write_text(json.dumps(data))
    one = curator()
    review_labels(one, "coco", path).apply(one)
    assert curator().category(2).name == then
    assert review_labels(one, "coco", path).lines() == []


def test_what_could_not_be_read_again_stays_and_holds_nothing_else_up(birds, run, tmp_path):
    """After a journal was carried: 1 (heron) and 4 (new-1) are gone. They go along with a name, but cannot be moved."""
    birds[1].unlink()
    birds[4].unlink()
    encoder = SimpleNamespace(readable=lambda files: (np.eye(8)[[4] * len(files)], list(range(len(files))), {}))
    later = SimpleNamespace(
        classes=["heron", "owl"], encoder=encoder, dictionary=lambda: PrototypeDictionary(np.eye(8)[:2], 0.8),
        fingerprint=lambda: "later", about=dict,
    )  # fmt: skip
    with Journal.open(run / "journal.db") as old, Journal.open(tmp_path / "new.db") as new:
        carry(old, new, later)
        curator = Curator(new)
        export_labels(curator, "csv", tmp_path / "labels.csv")
        rewrite(tmp_path / "labels.csv", {1: "owl", **dict.fromkeys((3, 4, 5), "stork"), 6: "heron"})
        review = review_labels(curator, "csv", tmp_path / "labels.csv")
        review.apply(curator)
        assert review.stuck == [1]
        assert list(names_in(curator).values()) == ["heron", "heron", "owl", *["stork"] * 3, "heron", "new-2"]
