"""Promises of newfound.features: unit features in order, the same from the cache as computed, errors in their place."""

from __future__ import annotations

import itertools
import os
import threading

import numpy as np
import pytest
import torch
from PIL import Image

from newfound import features
from newfound.backbone import InputSpec
from newfound.cache import TokenCache
from newfound.errors import ImageError, MissingFileError
from newfound.features import Encoder, ahead, half_or_float, seen_from, unit
from newfound.images import content_hash, content_of, find_images
from newfound.views import Augmentation, Views

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def cache(tmp_path) -> TokenCache:
    return TokenCache(tmp_path / "tokens")


@pytest.fixture
def make_encoder(tiny_backbone):
    def make(cache: TokenCache | None = None, *, name: str = "test_efficientnet", augmentation=None, **options):
        backbone = tiny_backbone(name, **options)
        return Encoder(backbone, Views(backbone.spec, augmentation or Augmentation()), cache=cache, batch=4)

    return make


def entries(cache: TokenCache) -> set[str]:
    return {path.name for path in cache.folder.rglob("*.tokens")}


@pytest.mark.parametrize("name", ["test_efficientnet", "test_vit"])
def test_features_are_unit_rows_in_the_order_of_the_images(make_encoder, pictures, name):
    images, _ = pictures()
    encoder = make_encoder(name=name)
    features = encoder.features(images)
    assert features.shape == (20, encoder.backbone.dim)
    assert features.dtype == np.float32
    assert np.linalg.norm(features, axis=1) == pytest.approx(1, abs=1e-5)
    backwards = encoder.features(images[::-1])
    assert np.abs(backwards[::-1] - features).max() < 1e-3
    with torch.no_grad():
        pixels = torch.stack([encoder.views.centre(Image.fromarray(image)) for image in images])
        direct = unit(encoder.backbone(pixels)).numpy()
    assert np.abs(direct - features).max() < 5e-3, "but for the rounding of tokens to half precision"


def test_features_from_the_cache_are_those_that_were_computed(make_encoder, pictures, cache):
    images, _ = pictures()
    without = make_encoder().features(images)
    encoder = make_encoder(cache)
    computed, read = encoder.features(images), encoder.features(images)
    assert np.array_equal(computed, without)
    assert np.array_equal(read, computed)
    assert len(entries(cache)) == len(images)


def test_cached_tokens_are_used_without_asking_the_trunk(make_encoder, pictures, cache, monkeypatch):
    images, _ = pictures()
    computed = make_encoder(cache).features(images)
    encoder = make_encoder(cache)
    monkeypatch.setattr(encoder.backbone, "trunk", lambda _: pytest.fail("the trunk was asked"))
    assert np.array_equal(encoder.features(images), computed)


def test_a_half_cached_list_gives_the_same_features(make_encoder, pictures, cache):
    images, _ = pictures()
    make_encoder(cache).features(images[::2])
    assert np.abs(make_encoder(cache).features(images) - make_encoder().features(images)).max() < 1e-3


def test_another_image_transform_or_trunk_has_another_entry_and_nothing_else_has(make_encoder, pictures, cache):
    images, _ = pictures(kinds=1, each=2)
    first, second = images

    def added(encoder: Encoder, image) -> int:
        before = entries(cache)
        encoder.features([image])
        return len(entries(cache) - before)

    assert added(make_encoder(cache), first) == 1
    assert added(make_encoder(cache), first.copy()) == 0
    trained = make_encoder(cache)
    with torch.no_grad():
        next(iter(trained.backbone.tail_state().values())).add_(1)
    assert added(trained, first) == 0, "the tail is behind the cache"
    assert added(make_encoder(cache), second) == 1
    changed = first.copy()
    changed[0, 0, 0] ^= 1
    assert added(make_encoder(cache), changed) == 1
    assert added(make_encoder(cache, name="test_vit"), first) == 1
    assert added(make_encoder(cache, tune_blocks=2), first) == 1
    other_trunk = make_encoder()
    with torch.no_grad():
        other_trunk.backbone.model.conv_stem.weight.mul_(1.01)
    assert added(Encoder(other_trunk.backbone, other_trunk.views, cache=cache), first) == 1
    from dataclasses import replace

    encoder = make_encoder()
    wider = Views(replace(encoder.views.spec, crop_pct=0.5))
    assert added(Encoder(encoder.backbone, wider, cache=cache), first) == 1


def test_a_changed_file_is_read_anew(make_encoder, picture, cache, tmp_path):
    path = tmp_path / "picture.png"
    Image.fromarray(picture(0, 0)).save(path)
    before = make_encoder(cache).features([path])
    Image.fromarray(picture(1, 0)).save(path)
    after = make_encoder(cache).features([path])
    assert np.array_equal(after, make_encoder().features([path]))
    assert not np.allclose(before, after)


@pytest.mark.parametrize("views", ["centre", "random"])
def test_a_file_that_is_replaced_while_it_is_read_leaves_no_wrong_entry_in_the_cache(
    make_encoder, picture, cache, tmp_path, monkeypatch, views
):
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    Image.fromarray(picture(0, 0)).save(first)
    Image.fromarray(picture(1, 0)).save(second)
    whole = first.read_bytes()

    def read(cache: TokenCache) -> bytes:
        encoder = make_encoder(cache)
        if views == "centre":
            return encoder.features([first]).tobytes()
        return encoder.cache.get(encoder.cached_views([first], 2, seed=0)[0]).tobytes()

    def hashed_and_replaced(image):
        found = content_hash(image)
        os.replace(second, first)
        return found

    expected = read(TokenCache(tmp_path / "other"))
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(features, "content_hash", hashed_and_replaced)
        assert read(cache) == expected, "one picture, its hash and its pixels"
    assert first.read_bytes() != whole
    first.write_bytes(whole)
    assert read(cache) == expected


def test_a_block_says_which_contents_its_features_are_of(make_encoder, pictures, write_folder, cache, tmp_path):
    images, _ = pictures(kinds=2, each=2)
    paths = find_images(write_folder(tmp_path / "pictures", kinds=2, each=2))

    def told(encoder, given):
        return [content for block in encoder.stream(given, 3) for content in block.contents]

    for encoder in (make_encoder(), make_encoder(cache), make_encoder(cache)):
        assert told(encoder, [*paths, tmp_path / "gone.png"]) == [*map(content_of, paths), None]
        assert set(told(encoder, images)) <= {*map(content_of, images), None}, "nothing was read of what is in memory"


def test_random_views_are_cached_once_and_are_what_the_trunk_makes_of_them(make_encoder, pictures, cache):
    images, _ = pictures(kinds=2, each=2)
    encoder = make_encoder(cache)
    keys = encoder.cached_views(images, 3, seed=0)
    assert len(set(keys)) == 4
    stored = encoder.cache.get(keys[0])
    assert stored.shape[0] == 3
    assert not np.array_equal(stored[0], stored[1])
    assert encoder.cached_views(images, 3, seed=0) == keys
    assert not set(keys) & set(encoder.cached_views(images, 3, seed=1))
    assert not set(keys) & set(encoder.cached_views(images, 2, seed=0))
    stronger = make_encoder(cache, augmentation=Augmentation(jitter=0.5))
    assert not set(keys) & set(stronger.cached_views(images, 3, seed=0))


def test_a_views_number_decides_it_not_how_many_there_are(make_encoder, pictures, cache):
    images, _ = pictures(kinds=1, each=1)
    encoder = make_encoder(cache)
    few, many = (encoder.cache.get(encoder.cached_views(images, n, seed=0)[0]) for n in (2, 4))
    assert np.abs(few.astype(np.float32) - many[:2].astype(np.float32)).max() < 0.02


def test_an_unreadable_image_has_its_error_in_its_place_and_the_others_their_features(make_encoder, pictures, tmp_path):
    images, _ = pictures(kinds=2, each=3)
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\nrest is missing")
    gone = tmp_path / "gone.jpg"
    mixed = [images[0], broken, *images[1:5], gone, images[5]]
    blocks = list(make_encoder().stream(mixed, block=3))
    errors = [error for block in blocks for error in block.errors]
    assert [type(e) for e in errors] == [type(None), ImageError, *[type(None)] * 4, MissingFileError, type(None)]
    features = np.concatenate([block.features for block in blocks])
    assert np.abs(features - make_encoder().features(images)).max() < 1e-3
    assert [row for block in blocks for row in block.rows] == [0, None, 1, 0, 1, 2, None, 0]
    with pytest.raises(ImageError, match="broken"):
        make_encoder().features(mixed)
    kept, positions, failed = make_encoder().readable(mixed)
    assert positions == [0, 2, 3, 4, 5, 7]
    assert sorted(failed) == [1, 6]
    assert np.abs(kept - features).max() < 1e-3


def test_a_stream_of_unreadable_images_only_is_a_stream_of_errors(make_encoder, tmp_path):
    (block,) = make_encoder().stream([tmp_path / "a.png", tmp_path / "b.png"])
    assert block.rows == [None, None]
    assert block.features.shape == (0, 256)


def test_an_image_without_a_finite_feature_is_called_by_its_place_in_the_stream(make_encoder, pictures, monkeypatch):
    encoder, (images, _) = make_encoder(), pictures(kinds=2, each=3)
    real, blocks = encoder.tail, itertools.count()

    def tail(tokens):
        features = real(tokens)
        if next(blocks) == 1:  # the second block, of the images 4 and 5
            features[1] = np.nan
        return features

    monkeypatch.setattr(encoder, "tail", tail)
    _, positions, errors = encoder.readable(images)
    assert positions == [0, 1, 2, 3, 4]
    assert str(errors[5]).startswith("image 5: ")


def test_an_empty_list_has_no_features(make_encoder):
    assert make_encoder().features([]).shape == (0, 256)


def test_progress_is_told_of_every_image_once(make_encoder, pictures):
    images, _ = pictures()
    told: list[int] = []
    make_encoder().features(images, told.append)
    assert sum(told) == len(images)


def test_one_image_with_huge_tokens_changes_no_other_images_feature(tmp_path):
    """Half precision is chosen image by image, as the cache does, so neighbours in a batch do not matter."""

    class Huge:  # a backbone whose tokens are pixels, out of half precision's reach for white pictures
        name, tune_blocks, split, dim, weights = "huge", 1, "cut", 3, "random"
        spec = InputSpec(32, (0.0,) * 3, (1.0,) * 3, "bilinear", 1.0)

        def trunk(self, pixels):
            return torch.where(pixels > 0.99, pixels * 1e6, pixels / 3)

        def tail(self, tokens):
            return tokens.mean(dim=(2, 3))

        def trunk_hash(self):
            return "huge"

        def parameters(self):
            return iter([torch.zeros(1)])

    grey, white = (np.full((32, 32, 3), v, np.uint8) for v in ((77, 111, 200), 255))
    backbone = Huge()
    cache = TokenCache(tmp_path / "tokens")
    encoder = Encoder(backbone, Views(backbone.spec), cache=cache)
    alone = Encoder(backbone, Views(backbone.spec)).features([grey])[0]
    computed = encoder.features([grey, white])
    read = encoder.features([grey, white])
    assert np.array_equal(computed, read), "computed and cached"
    assert np.array_equal(computed[0], alone), "in a batch and alone"


def test_a_cache_entry_that_was_damaged_is_made_again(make_encoder, pictures, cache):
    images, _ = pictures(kinds=1, each=1)
    expected = make_encoder(cache).features(images)
    (path,) = cache.folder.rglob("*.tokens")
    path.write_bytes(path.read_bytes()[:150])
    assert np.array_equal(make_encoder(cache).features(images), expected)


def test_a_cache_entry_that_another_process_drops_is_made_again(make_encoder, pictures, cache, monkeypatch):
    images, _ = pictures(kinds=1, each=1)
    expected = make_encoder(cache).features(images)
    read = TokenCache.get

    def gone_just_before(self, key):
        self._path(key).unlink(missing_ok=True)
        return read(self, key)

    monkeypatch.setattr(TokenCache, "get", gone_just_before)
    assert np.array_equal(make_encoder(cache).features(images), expected)


def test_reading_ahead_is_bounded_and_in_order():
    taken: list[int] = []

    def source():
        for number in itertools.count():
            taken.append(number)
            yield number

    results = ahead(source(), lambda n: n * n, depth=6)
    assert [next(results) for _ in range(4)] == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert len(taken) <= 4 + 6
    results.close()


def test_what_stands_alone_is_read_on_the_thread_that_asks_and_several_are_read_on_others():
    def readers(count: int, depth: int) -> set[int]:
        return {thread for _, thread in ahead(range(count), lambda _: threading.get_ident(), depth=depth)}

    here = {threading.get_ident()}
    assert readers(1, depth=128) == here
    assert readers(3, depth=1) == here
    assert readers(3, depth=2).isdisjoint(here)
    assert readers(0, depth=2) == set()


def test_with_a_depth_of_one_each_is_answered_before_the_next_is_asked_for():
    asked: list[int] = []
    answers = ahead((asked.append(n) or n for n in range(3)), lambda n: -n, depth=1)
    for n in range(3):
        assert next(answers) == (n, -n)
        assert asked == list(range(n + 1))


def test_an_error_stands_in_the_place_of_an_image_that_stands_alone(make_encoder, tmp_path):
    (block,) = make_encoder().stream([tmp_path / "gone.png"])
    assert (block.rows, type(block.errors[0])) == ([None], MissingFileError)


def test_an_error_of_ones_own_is_not_swallowed():
    def work(item):
        raise ZeroDivisionError(item)

    with pytest.raises(ZeroDivisionError):
        list(ahead([1, 2], work, depth=2))


def test_half_precision_unless_it_overflows():
    assert half_or_float(torch.tensor([1.0, 60000.0])).dtype == torch.float16
    assert half_or_float(torch.tensor([1.0, 70000.0])).dtype == torch.float32


def test_an_image_whose_tokens_overflow_costs_the_others_of_its_batch_nothing(make_encoder, monkeypatch):
    encoder = make_encoder()
    tokens = torch.tensor([[1.0, 2.0], [1.0, 70000.0], [0.1, 3.0]])
    monkeypatch.setattr(encoder, "_trunk", lambda _: tokens)
    together = encoder._tokens(torch.zeros(3))
    assert [row.dtype for row in together] == [torch.float16, torch.float32, torch.float16]
    assert all(torch.equal(row, half_or_float(alone)) for row, alone in zip(together, tokens, strict=True))


def test_features_can_be_seen_from_a_centre(make_encoder, pictures):
    images, _ = pictures(kinds=2, each=3)
    encoder = make_encoder()
    plain = encoder.features(images)
    centre = torch.from_numpy(plain.mean(axis=0))
    encoder.read_with(lambda features: seen_from(centre, features))
    moved = plain - plain.mean(axis=0)
    assert encoder.features(images) == pytest.approx(moved / np.linalg.norm(moved, axis=1, keepdims=True), abs=1e-4)
    assert seen_from(torch.tensor([1.0, 0.0]), torch.tensor([[1.0, 2.0]])).tolist() == [[0.0, 1.0]]
