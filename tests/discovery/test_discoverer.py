"""Promises of the Discoverer: sightings in order, ids that stay, a stream that goes on."""

from __future__ import annotations

import io
import itertools
import json

import numpy as np
import pytest
from PIL import Image

from newfound.discovery import Category, Discoverer, Sighting
from newfound.errors import SettingsError

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def discoverer(tiny_run) -> Discoverer:
    """Knows kind0, kind1 and kind2 as 0, 1 and 2."""
    return tiny_run.discoverer()


@pytest.fixture
def stream(picture) -> list[np.ndarray]:
    """Known kinds and two new ones in turn: kind3 appears first as the fourth image, kind4 as the fifth."""
    return [picture(kind, number) for number in range(40, 43) for kind in range(5)]


def ids(sightings) -> list[int | None]:
    return [s.category for s in sightings]


def snapshot(discoverer: Discoverer) -> tuple:
    state = discoverer.dictionary.state()
    arrays = {k: v.tobytes() if isinstance(v, np.ndarray) else repr(v) for k, v in state.items()}
    categories = discoverer.categories(merged=True)
    return arrays, [(c.id, c.name, c.count, len(c.exemplars), c.merged_into) for c in categories]


def test_known_images_are_named_and_new_ones_found_categories_in_order(discoverer, stream):
    sightings = discoverer.observe(stream)
    assert ids(sightings) == [0, 1, 2, 3, 4] * 3
    assert [s.name for s in sightings[:5]] == ["kind0", "kind1", "kind2", "new-1", "new-2"]
    assert [s.is_new for s in sightings] == [False] * 3 + [True] * 2 + [False] * 10


def test_a_sighting_says_what_was_decided_and_why(discoverer, stream, tiny_run):
    known, _, _, new, _, later = discoverer.observe(stream[:6])
    assert known.image is stream[0]
    assert known.cut == tiny_run.threshold
    assert known.score >= known.cut
    assert new.score < new.cut
    assert known.error is None
    assert [category for category, _ in known.runners_up] != [0, 0]
    assert known.category not in [category for category, _ in known.runners_up]
    scores = [known.score, *[score for _, score in known.runners_up]]
    assert scores == sorted(scores, reverse=True)
    assert isinstance(later, Sighting)


def test_a_sighting_becomes_json(discoverer, picture, tmp_path):
    path = tmp_path / "a.png"
    Image.fromarray(picture(0, 40)).save(path)
    from_path, from_array, missing = discoverer.observe([path, picture(3, 40), tmp_path / "gone.png"])
    line = json.loads(json.dumps(from_path.as_dict()))
    assert line["image"] == str(path)
    assert line["category"] == 0
    assert line["name"] == "kind0"
    assert line["is_new"] is False
    assert set(line) == {"image", "category", "name", "is_new", "score", "cut", "runners_up"}
    assert json.loads(json.dumps(from_array.as_dict(7)))["image"] == "image 7"
    assert "gone.png" in json.loads(json.dumps(missing.as_dict()))["error"]


def test_a_sighting_of_an_open_file_becomes_json_too(discoverer, picture, tmp_path):
    Image.fromarray(picture(0, 40)).save(tmp_path / "a.png")
    with (tmp_path / "a.png").open("rb") as file:
        (sighting,) = discoverer.observe(file)
        assert json.loads(json.dumps(sighting.as_dict(3)))["image"] == "image 3"


def test_any_way_to_give_the_images_gives_the_same_ids(tiny_run, stream, tmp_path):
    for index, image in enumerate(stream):
        Image.fromarray(image).save(tmp_path / f"{index:02}.png")
    paths = sorted(tmp_path.glob("*.png"))
    forms = {
        "arrays": stream,
        "one array": np.stack(stream),
        "PIL": [Image.fromarray(image) for image in stream],
        "paths": paths,
        "texts": [str(path) for path in paths],
        "folder": tmp_path,
        "bytes": [path.read_bytes() for path in paths],
        "iterator": iter(stream),
        "streams": [io.BytesIO(path.read_bytes()) for path in paths],
    }
    expected = [0, 1, 2, 3, 4] * 3
    for name, source in forms.items():
        assert ids(tiny_run.discoverer().observe(source)) == expected, name


@pytest.mark.parametrize("block", [1, 2, 4, 7, 100])
def test_any_block_size_gives_the_same_sightings(tiny_run, stream, block):
    whole, parts = (tiny_run.discoverer().observe(stream, block=b) for b in (None, block))
    assert [(s.category, s.name, s.is_new) for s in parts] == [(s.category, s.name, s.is_new) for s in whole]
    assert [s.score for s in parts] == pytest.approx([s.score for s in whole], abs=1e-4)


def test_images_one_at_a_time_give_the_ids_of_the_whole_list(tiny_run, stream):
    one_by_one = tiny_run.discoverer()
    assert ids(one_by_one.observe(image)[0] for image in stream) == ids(tiny_run.discoverer().observe(stream))


def test_an_unreadable_image_gets_an_error_and_the_stream_goes_on_with_the_same_ids(tiny_run, stream, tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    gone = tmp_path / "gone.jpg"
    mixed = [broken, *stream[:4], gone, *stream[4:], b"not an image"]
    sightings = tiny_run.discoverer().observe(mixed, block=3)
    assert len(sightings) == len(mixed)
    bad = [s for s in sightings if s.error]
    assert [s.image for s in bad] == [broken, gone, b"not an image"]
    assert "broken.png" in bad[0].error
    assert "gone.jpg" in bad[1].error
    for sighting in bad:
        assert (sighting.category, sighting.name, sighting.is_new, sighting.score) == (None, None, False, None)
    assert ids(s for s in sightings if not s.error) == ids(tiny_run.discoverer().observe(stream))


def test_an_image_without_a_usable_feature_gets_an_error_and_the_stream_goes_on(tiny_run, stream, monkeypatch):
    discoverer = tiny_run.discoverer()
    tail = type(discoverer.encoder).tail

    def one_is_nan(self, tokens):
        features = np.array(tail(self, tokens))
        features[1] = np.nan
        return features

    monkeypatch.setattr(type(discoverer.encoder), "tail", one_is_nan)
    sightings = discoverer.observe(stream[:4])
    assert [s.error is not None for s in sightings] == [False, True, False, False]
    assert ids(sightings) == [0, None, 2, 3]


def test_predict_changes_nothing(discoverer, stream):
    discoverer.observe(stream[:4])
    before = snapshot(discoverer)
    first, second = discoverer.predict(stream), discoverer.predict(stream)
    assert snapshot(discoverer) == before
    assert [(s.category, s.score) for s in first] == [(s.category, s.score) for s in second]
    would_be_new = first[4]
    assert (would_be_new.category, would_be_new.name, would_be_new.is_new) == (None, None, True)
    assert would_be_new.score < would_be_new.cut
    assert first[3].category == 3
    assert first[3].name == "new-1"
    assert ids(discoverer.observe(stream[:5])) == [0, 1, 2, 3, 4]


def test_an_iterator_is_answered_lazily(discoverer, picture):
    taken = []

    def camera():
        for number in itertools.count():
            taken.append(number)
            yield picture(number % 5, 40)

    sightings = discoverer.observe(camera(), block=2)
    assert not taken, "nothing is read before anybody asks"
    first = list(itertools.islice(sightings, 4))
    assert ids(first) == [0, 1, 2, 3]
    assert len(taken) <= 4 + 2 * 2 + 2
    sightings.close()


def test_with_a_block_of_one_an_image_is_answered_before_the_next_one_is_waited_for(discoverer, picture):
    taken = []

    def slow_camera():
        for number in range(3):
            taken.append(number)
            yield picture(number, 40)

    sightings = discoverer.observe(slow_camera(), block=1)
    next(sightings)
    assert taken == [0]


def test_a_finite_source_gives_a_list_and_an_iterator_an_iterator(discoverer, picture):
    assert isinstance(discoverer.observe(picture(0, 40)), list)
    assert isinstance(discoverer.predict([picture(0, 40)]), list)
    assert not isinstance(discoverer.observe(iter([picture(0, 40)])), list)
    assert not isinstance(discoverer.predict(p for p in [picture(0, 40)]), list)
    assert discoverer.observe([]) == []


def test_categories_count_and_keep_examples_of_what_was_seen(discoverer, stream, picture):
    discoverer.observe(stream)
    discoverer.observe([picture(3, number) for number in range(50, 60)])
    categories = discoverer.categories()
    assert [c.id for c in categories] == [0, 1, 2, 3, 4]
    assert [c.origin for c in categories] == ["known"] * 3 + ["discovered"] * 2
    assert [c.count for c in categories] == [3, 3, 3, 13, 3]
    assert all(isinstance(c, Category) for c in categories)
    assert categories[0].exemplars[0] is stream[0]
    assert len(categories[3].exemplars) == 8


def test_a_category_can_be_renamed_and_is_called_so_from_then_on(discoverer, stream):
    discoverer.observe(stream)
    discoverer.rename(3, " heron ")
    assert discoverer.category(3).name == "heron"
    assert discoverer.predict(stream[3])[0].name == "heron"
    assert discoverer.observe(stream[3])[0].category == 3


@pytest.mark.parametrize(("category", "name", "words"), [(9, "heron", "no category 9"), (0, "  ", "empty")])
def test_a_name_for_nothing_or_an_empty_name_is_refused(discoverer, category, name, words):
    with pytest.raises(SettingsError, match=words):
        discoverer.rename(category, name)


def test_merged_categories_are_one_and_all_ids_stay_valid(discoverer, stream):
    given = discoverer.observe(stream)
    survivor = discoverer.merge([4, 3])
    assert survivor.id == 3
    assert survivor.count == 6
    assert discoverer.category(4) is discoverer.category(3)
    assert [c.id for c in discoverer.categories()] == [0, 1, 2, 3]
    assert [c.id for c in discoverer.categories(merged=True)] == [0, 1, 2, 3, 4]
    assert discoverer.categories(merged=True)[4].merged_into == 3
    assert all(discoverer.category(s.category).name for s in given)
    discoverer.rename(4, "wader")
    assert discoverer.category(3).name == "wader", "an old id still means the category it lives on in"


def test_ids_are_not_used_again_after_a_merge(discoverer, stream, tiny_run):
    strict = tiny_run.discoverer(threshold=1.0)
    strict.observe(stream[:4])
    strict.merge([3, 4])
    assert strict.observe(stream[4])[0].category == 7
    assert strict.categories()[-1].name == "new-5"


def test_a_known_category_takes_a_discovered_one_in(discoverer, stream):
    discoverer.observe(stream)
    survivor = discoverer.merge([4, 1])
    assert survivor.id == 1
    assert survivor.name == "kind1"
    assert survivor.count == 6


def test_merges_can_be_chained_and_repeated(discoverer, tiny_run, stream):
    strict = tiny_run.discoverer(threshold=1.0)
    strict.observe(stream[:5])
    strict.merge([4, 5])
    strict.merge([3, 5])
    assert strict.category(5).id == strict.category(4).id == 3
    assert strict.category(3).count == 3
    strict.merge([5, 4, 3])
    assert strict.category(3).count == 3


def test_two_known_categories_cannot_be_merged(discoverer):
    with pytest.raises(SettingsError):
        discoverer.merge([0, 1])
    with pytest.raises(SettingsError, match="no category 77"):
        discoverer.merge([0, 77])


def test_automatic_merging_keeps_counts_and_ids(tiny_run, picture):
    from newfound.discovery import PrototypeDictionary

    dictionary = PrototypeDictionary(tiny_run.known["prototypes"], threshold=1.0, merge_every=6, merge_at=0.9)
    discoverer = Discoverer(tiny_run.encoder, dictionary, tiny_run.classes)
    sightings = discoverer.observe([picture(3 + n % 2, 40 + n) for n in range(6)])
    assert ids(sightings) == [3, 4, 5, 6, 7, 8]
    assert sum(c.count for c in discoverer.categories()) == 6
    assert len(discoverer.categories()) < 9
    homes = {discoverer.category(s.category).id for s in sightings}
    assert homes == {c.id for c in discoverer.categories() if c.origin == "discovered"}


def test_the_closed_set_never_finds_anything_new(fit_tiny, pictures, stream):
    closed = fit_tiny(pictures(kinds=2, each=3), method="closed").discoverer()
    assert not any(s.is_new for s in closed.observe(stream))
    assert len(closed.categories()) == 2
