"""Promises of the Discoverer: sightings in order, ids that stay, a stream that goes on."""

from __future__ import annotations

import io
import itertools
import json
import os

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from newfound.discoverer import Discoverer
from newfound.discovery import BayesianDictionary, events_of, standing
from newfound.errors import SettingsError
from newfound.features import Block
from newfound.images import content_of
from newfound.journal import Journal
from newfound.sightings import Category, Sighting

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
    assert set(line) == {"image", "category", "name", "is_new", "score", "cut", "runners_up", "number"}
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


@pytest.fixture
def camera(picture, tmp_path):
    """camera(kind, number): put a picture in the place of the one that latest.png is, at once, as cameras do."""

    def put(kind: int, number: int) -> bytes:
        Image.fromarray(picture(kind, number)).save(tmp_path / "part.png")
        os.replace(tmp_path / "part.png", tmp_path / "latest.png")
        return content_of(tmp_path / "latest.png")

    put.file = tmp_path / "latest.png"
    return put


def replaced_when_looked_up(discoverer, monkeypatch, camera, *picture) -> None:
    """The camera's next picture comes after a block was looked up in the journal, and before it is encoded."""
    contents = discoverer.encoder.contents

    def then_replaced(items):
        found = contents(items)
        camera(*picture)
        return found

    monkeypatch.setattr(discoverer.encoder, "contents", then_replaced)


@pytest.mark.parametrize("others", [0, 20])
def test_a_file_that_is_replaced_before_it_is_encoded_is_the_new_picture_and_the_old_one_stays_unseen(
    discoverer, picture, camera, monkeypatch, others
):
    known, new = camera(0, 60), camera(3, 60)
    camera(0, 60)
    with monkeypatch.context() as meanwhile:
        replaced_when_looked_up(discoverer, meanwhile, camera, 3, 60)
        *_, seen = discoverer.observe([*(picture(1, 60 + n) for n in range(others)), camera.file])
    (row,) = discoverer.keeper.journal.sightings([seen.number])
    expected = discoverer.encoder.features([camera.file])[0].astype(np.float16)
    assert row.content == new
    assert np.frombuffer(row.feature, np.float16) == pytest.approx(expected, abs=2e-3)
    assert seen.is_new
    assert camera(0, 60) == known
    (later,) = discoverer.observe([camera.file])
    assert not later.repeated, "nothing was decided on it before"
    assert later.name == "kind0"


def test_a_file_that_is_replaced_by_a_picture_that_was_seen_before_is_not_entered(discoverer, camera, monkeypatch):
    camera(0, 61)
    (first,) = discoverer.observe([camera.file])
    camera(1, 61)
    replaced_when_looked_up(discoverer, monkeypatch, camera, 0, 61)
    (again,) = discoverer.observe([camera.file])
    assert (again.repeated, again.number, again.name) == (True, first.number, "kind0")
    assert discoverer.keeper.journal.position().sightings == 1


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
    assert discoverer.category(4) == discoverer.category(3)
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


# ---------------------------------------------------------------- dictionaries that weigh evidence


class ReadAsGiven:
    """An encoder for images that are readings already, which half precision holds as they are or nearly so."""

    batch = 64

    def contents(self, items):
        return [content_of(item) for item in items]

    def stream(self, items, block=None):
        items = list(items)
        for start in range(0, len(items), block or 64):
            part = items[start : start + (block or 64)]
            features, rows = np.stack(part).astype(np.float32), list(range(len(part)))
            yield Block(part, features, rows, [None] * len(part), self.contents(part))


def weighing(spread, sums, counts, threshold, **options) -> Discoverer:
    dictionary = BayesianDictionary(spread, sums, counts, threshold, **options)
    return Discoverer(ReadAsGiven(), dictionary, [f"kind{k}" for k in range(len(counts))])


def test_a_moved_image_is_counted_and_shown_where_it_went():
    # 2.3 joins the only category there is, though it is of the crowd around 4.2 that comes later.
    images = [np.array([x]) for x in (0.0, 2.3, 4.2, 4.2, 4.1, 4.2, 4.3, 0.0, -0.1, 0.1)]
    for block in (1, 4, None):
        discoverer = weighing([25.0], np.empty((0, 1)), [], 0.0, reconsider_every=10)
        sightings = discoverer.observe(images, block=block, again=True)
        assert ids(sightings) == [0, 0, 1, 1, 1, 1, 1, 0, 0, 0], "answered at once as it seemed then"
        early, late = discoverer.categories()
        assert (early.count, late.count) == (4, 6)
        assert [image.item() for image in early.exemplars] == [0.0, 0.0, -0.1, 0.1]
        assert any(image is images[1] for image in late.exemplars)


def test_a_category_that_dissolves_lives_on_where_its_last_image_went():
    images = [np.array([x]) for x in (0.0, 2.0, 2.0, 2.0)]
    discoverer = weighing([25.0], np.empty((0, 1)), [], 4.0, reconsider_every=4, reconsider_at=-5.0)
    sightings = discoverer.observe(images[:1])
    discoverer.rename(0, "heron")
    sightings += discoverer.observe(images[1:], again=True)
    living = discoverer.categories()
    assert [c.id for c in living] == discoverer.dictionary.ids.tolist()
    assert sum(c.count for c in living) == 4
    assert all(discoverer.category(s.category) in living for s in sightings)


@settings(max_examples=15)
@given(st.integers(0, 9999), st.sampled_from([None, -3.0]), st.sampled_from([None, 0.0]), st.integers(1, 100))
@example(9, -3.0, None, 100)  # a category dissolves, then a doubtful image that was answered with it moves
def test_counts_and_exemplars_are_those_of_the_answers_as_they_stand(seed, alone, merge_at, block):
    rng = np.random.default_rng(seed)
    readings = rng.standard_normal((6, 3))[rng.integers(0, 6, 60)] * 2.5 + rng.standard_normal((60, 3))
    images = list(readings.astype(np.float16).astype(np.float32))
    options = {"alone": alone, "reconsider_every": 5, "reconsider_at": -8.0, "merge_at": merge_at}
    discoverer = weighing(np.full(3, 6.0), rng.standard_normal((2, 3)) * 9, [4, 4], 4.0, **options)
    alike = discoverer.dictionary.copy()
    given_ = np.array(ids(discoverer.observe(images, block=block)))
    assert np.array_equal(alike.observe(images).category, given_)
    now = standing(alike, given_, events_of(alike))
    number = {id(image): i for i, image in enumerate(images)}
    living = discoverer.categories()
    assert [c.id for c in living] == alike.ids.tolist()
    assert [c.count for c in living] == [(now == c.id).sum() for c in living]
    for category in living:
        shown = [number[id(image)] for image in category.exemplars]
        assert len(set(shown)) == len(shown) <= 8
        assert set(now[shown].tolist()) <= {category.id}


def test_a_sighting_says_how_probable_its_answer_is_and_how_probable_something_new():
    # By hand in test_bayesian.py: with 4 in the only known category, x = 2 has a log ratio of 0.6276.
    discoverer = weighing([3.0], [[4.0]], [1], 0.0)
    known, founder = discoverer.observe([np.array([2.0]), np.array([-4.0])])
    assert known.probability == pytest.approx(0.65195, abs=1e-5)
    assert known.new_probability == pytest.approx(1 - 0.65195, abs=1e-5)
    assert founder.is_new
    assert founder.probability == founder.new_probability == pytest.approx(0.99999, abs=1e-5)


def test_every_sighting_says_how_probable_its_runners_up_are_and_still_does_when_it_is_read_again(tmp_path):
    rng = np.random.default_rng(4)
    means = rng.standard_normal((5, 3)) * 2
    readings = means[rng.integers(0, 5, 40)] + rng.standard_normal((40, 3))
    images = list(readings.astype(np.float16).astype(np.float32))
    dictionary = BayesianDictionary(np.full(3, 4.0), 4 * means[:4], [4] * 4, 0.0)
    decided = dictionary.copy().observe(np.stack(images), runners_up=2)

    def opened() -> Discoverer:
        return Discoverer(ReadAsGiven(), dictionary.copy(), list("abcd"), Journal.open(tmp_path / "journal.db"))

    with opened() as discoverer:
        first = discoverer.observe(images)
    told = [s.runners_up_probability for s in first]
    assert told == list(map(tuple, decided.runners_up_probability.tolist()))
    assert [[c for c, _ in s.runners_up] for s in first] == decided.runners_up_category.tolist()
    assert max(map(max, told)) > 0.1
    assert any(s.is_new for s in first)
    for s in first:
        assert sum(s.runners_up_probability) + s.new_probability + (0 if s.is_new else s.probability) <= 1 + 1e-12
    with opened() as discoverer:
        kept = discoverer.sightings()
    assert [s.runners_up_probability for s in kept] == told


def test_probabilities_are_in_the_json_of_those_that_have_them(discoverer, picture):
    evidence = weighing([3.0], [[4.0], [-1.0]], [1, 1], 0.0).observe([np.array([2.0])])[0]
    line = json.loads(json.dumps(evidence.as_dict(0)))
    assert line["probability"] == evidence.probability
    assert line["new_probability"] == evidence.new_probability
    assert line["runners_up_probability"] == [*evidence.runners_up_probability]
    assert len(line["runners_up_probability"]) == len(line["runners_up"]) == 1
    cosine = discoverer.observe([picture(0, 40)])[0]
    assert (cosine.probability, cosine.new_probability, cosine.runners_up_probability) == (None, None, ())
    assert not {"probability", "new_probability", "runners_up_probability"} & set(cosine.as_dict())


def test_a_doubtful_image_gets_its_best_category_until_a_second_one_like_it_comes():
    discoverer = weighing([25.0], [[0.0]], [30], 1.0, alone=-20.0)
    images = [np.array([5.0]), np.array([5.1])]
    doubtful, second = discoverer.observe(images)
    assert (doubtful.category, doubtful.is_new, doubtful.name) == (0, False, "kind0")
    assert doubtful.score < doubtful.cut
    assert (second.category, second.is_new, second.name) == (1, True, "new-1")
    assert [c.count for c in discoverer.categories()] == [0, 2]
    assert discoverer.category(0).exemplars == []
    assert {image.item() for image in discoverer.category(1).exemplars} == {5.0, 5.1}
