"""Promises of newfound.images: every picture becomes upright RGB, every other thing a named error."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from newfound.errors import DataError, ImageError, MissingFileError, SettingsError
from newfound.images import MAX_PIXELS, content_hash, find_images, is_image_path, open_image, read_once, thumbnail

HEIGHT, WIDTH = 20, 28
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")


def pixels(height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """A smooth picture that looks different from every side."""
    y, x = np.mgrid[0:height, 0:width]
    return np.stack([8 * x, 11 * y, 4 * (x + y)], axis=-1).astype(np.uint8)


def encoded(image: Image.Image, format: str, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def png(width: int, height: int, depth: int, colour: int, rows: bytes = b"") -> bytes:
    """A PNG written by hand, for what Pillow does not write: 16-bit colour, and headers that lie."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def opened(source, **options) -> np.ndarray:
    image = open_image(source, **options)
    assert image.mode == "RGB"
    return np.asarray(image)


@contextmanager
def without_privileges():
    """Run as somebody who may not read root's files; as root, that takes another user id."""
    if os.name != "posix":
        pytest.skip("needs POSIX permissions")
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(65534)
    except PermissionError:
        pytest.skip("root here may not become another user")
    try:
        yield
    finally:
        os.seteuid(0)


# --- what becomes pixels


@pytest.mark.parametrize("format", ["PNG", "BMP", "TIFF", "WEBP"])
def test_a_lossless_image_keeps_every_pixel(format, tmp_path):
    options = {"lossless": True} if format == "WEBP" else {}
    path = tmp_path / "picture"
    data = encoded(Image.fromarray(pixels()), format, **options)
    path.write_bytes(data)
    for source in (path, str(path), data, bytearray(data), io.BytesIO(data)):
        assert np.array_equal(opened(source), pixels())


@pytest.mark.parametrize("format", ["JPEG", "WEBP"])
def test_a_lossy_image_is_close(format):
    found = opened(encoded(Image.fromarray(pixels()), format, quality=95)).astype(int)
    assert np.abs(found - pixels()).mean() < 4


def test_the_first_frame_of_an_animation_is_taken():
    first, second = Image.new("RGB", (6, 4), "red"), Image.new("RGB", (6, 4), "blue")
    for format in ("GIF", "WEBP", "TIFF", "PNG"):
        data = encoded(first, format, save_all=True, append_images=[second])
        assert np.abs(opened(data).astype(int) - [255, 0, 0]).max() <= 2, format


@pytest.mark.parametrize("options", [("PNG", {}), ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"})])
def test_16_bit_grey_is_scaled_by_its_full_range(options):
    wide = np.linspace(0, 65535, HEIGHT * WIDTH).round().astype(np.uint16).reshape(HEIGHT, WIDTH)
    found = opened(encoded(Image.fromarray(wide), options[0], **options[1]))
    assert np.array_equal(found[..., 0], np.rint(wide / 257))
    assert np.array_equal(found[..., 0], found[..., 2])


def test_16_bit_big_endian_tiff_and_mode_i_read_the_same():
    wide = np.arange(0, 65536, 13, dtype=np.uint16)[: HEIGHT * WIDTH].reshape(HEIGHT, WIDTH) * 8
    big = Image.frombytes("I;16B", (WIDTH, HEIGHT), wide.astype(">u2").tobytes())
    as_int = Image.fromarray(wide.astype(np.int32))
    assert as_int.mode == "I"
    assert np.array_equal(opened(encoded(big, "TIFF")), opened(wide))
    assert np.array_equal(opened(as_int), opened(wide))


def test_16_bit_colour_is_scaled_by_its_full_range():
    wide = (pixels().astype(np.uint32) * 257).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in wide)
    assert np.array_equal(opened(png(WIDTH, HEIGHT, 16, 2, rows)), pixels())


def test_the_transparent_value_of_16_bit_grey_is_white():
    wide = np.array([[1000, 40000]], dtype=np.uint16)
    assert opened(encoded(Image.fromarray(wide), "PNG", transparency=1000))[0, :, 0].tolist() == [255, 156]


def test_integers_beyond_16_bits_are_scaled_by_their_range():
    deep = Image.fromarray(np.array([[-100_000, 0, 100_000]], dtype=np.int32))
    assert opened(encoded(deep, "TIFF"))[0, :, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize("compression", [None, "tiff_lzw"])
def test_a_tiff_of_32_bits_is_scaled_by_its_range_however_small_its_values(compression):
    counts = Image.fromarray(np.array([[0, 500, 1000]], dtype=np.int32))
    data = encoded(counts, "TIFF", compression=compression)
    assert opened(data)[0, :, 0].tolist() == [0, 128, 255]
    assert opened(Image.open(io.BytesIO(data)))[0, :, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-2.0, 0.0, 2.0], [0, 128, 255]),
        ([np.nan, 5.0, 6.0, np.inf, -np.inf], [0, 0, 255, 255, 0]),
        ([7.5, 7.5], [0, 0]),
        ([np.nan, np.inf], [0, 0]),
        ([-3e38, 3e38], [0, 255]),
    ],
)
def test_a_float_tiff_is_scaled_by_its_finite_range(values, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = opened(encoded(Image.fromarray(np.array([values], dtype=np.float32)), "TIFF"))
    assert found[0, :, 0].tolist() == expected


def test_alpha_is_laid_over_white():
    rgba = np.array([[[255, 0, 0, 255], [255, 0, 0, 0], [0, 0, 0, 128]]], dtype=np.uint8)
    expected = [[255, 0, 0], [255, 255, 255], [127, 127, 127]]
    assert opened(encoded(Image.fromarray(rgba), "PNG"))[0].tolist() == expected
    assert opened(rgba)[0].tolist() == expected
    grey_alpha = Image.fromarray(rgba).convert("LA")
    assert opened(encoded(grey_alpha, "PNG"))[0, 1].tolist() == [255, 255, 255]


def test_a_palette_keeps_its_colours_and_its_transparency_becomes_white():
    image = Image.new("P", (3, 1))
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.putdata([0, 1, 2])
    for format in ("PNG", "GIF", "BMP", "TIFF"):
        assert opened(encoded(image, format))[0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]], format
    for data in (encoded(image, "PNG", transparency=1), encoded(image, "GIF", transparency=1)):
        assert opened(data)[0].tolist() == [[255, 0, 0], [255, 255, 255], [0, 0, 255]]
    half = encoded(image, "PNG", transparency=bytes([255, 127, 0]))
    assert opened(half)[0].tolist() == [[255, 0, 0], [128, 255, 128], [255, 255, 255]]


def test_a_transparent_colour_becomes_white():
    image = Image.fromarray(np.array([[[9, 9, 9], [200, 0, 0]]], dtype=np.uint8))
    assert opened(encoded(image, "PNG", transparency=(9, 9, 9)))[0].tolist() == [[255, 255, 255], [200, 0, 0]]


@pytest.mark.parametrize("format", ["JPEG", "TIFF"])
def test_cmyk_gives_the_right_colours_also_when_adobe_stores_it_inverted(format):
    ink = {(0, 255, 255, 0): (255, 0, 0), (255, 0, 255, 0): (0, 255, 0), (0, 0, 0, 255): (0, 0, 0)}
    for cmyk, rgb in ink.items():
        data = encoded(Image.new("CMYK", (16, 16), cmyk), format)
        assert (b"Adobe" in data) == (format == "JPEG")
        assert np.abs(opened(data)[8, 8].astype(int) - rgb).max() <= 3


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "RGBX", "YCbCr", "HSV", "LAB", "I;16", "F"])
def test_every_pillow_mode_becomes_rgb(mode):
    assert opened(Image.new(mode, (5, 3))).shape == (3, 5, 3)


def test_one_bit_images_are_black_and_white():
    bits = np.array([[True, False, True]])
    for format, options in (("PNG", {}), ("BMP", {}), ("TIFF", {"compression": "group4"})):
        assert opened(encoded(Image.fromarray(bits), format, **options))[0, :, 0].tolist() == [255, 0, 255]


@pytest.mark.parametrize("format", ["PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize(
    ("orientation", "upright"),
    [
        (1, lambda a: a),
        (2, lambda a: a[:, ::-1]),
        (3, lambda a: a[::-1, ::-1]),
        (4, lambda a: a[::-1]),
        (5, lambda a: a.swapaxes(0, 1)),
        (6, lambda a: np.rot90(a, -1)),
        (7, lambda a: np.rot90(a, 2).swapaxes(0, 1)),
        (8, lambda a: np.rot90(a, 1)),
    ],
)
def test_exif_rotation_is_applied_exactly_once(format, orientation, upright):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if format == "WEBP" else {}
    image = open_image(encoded(Image.fromarray(pixels()), format, exif=exif, **options))
    assert np.array_equal(np.asarray(image), upright(pixels()))
    assert np.array_equal(opened(image), upright(pixels()))


def test_a_rotated_jpeg_stands_upright_and_damaged_exif_does_no_harm():
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.fromarray(pixels())
    assert open_image(encoded(image, "JPEG", exif=exif)).size == (HEIGHT, WIDTH)
    damaged = encoded(image, "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff garbage")
    assert open_image(damaged).size == (WIDTH, HEIGHT)


# --- arrays, tensors and PIL images


def test_arrays_of_every_accepted_type_give_the_same_picture():
    rgb = pixels()
    for array in (rgb, rgb.astype(np.uint16) * 257, rgb / 255, (rgb / 255).astype(np.float32)):
        assert np.array_equal(opened(array), rgb)
    assert np.array_equal(opened(rgb[..., 0]), np.repeat(rgb[..., :1], 3, axis=-1))
    assert np.array_equal(opened(rgb[..., :1]), opened(rgb[..., 0]))
    assert set(np.unique(opened(rgb[..., 0] > 50))) == {0, 255}


def test_tensors_are_taken_channels_first_or_last():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(pixels())
    assert np.array_equal(opened(tensor), pixels())
    assert np.array_equal(opened(tensor.permute(2, 0, 1)), pixels())
    assert np.array_equal(opened((tensor.permute(2, 0, 1) / 255).requires_grad_()), pixels())
    assert content_hash(tensor.permute(2, 0, 1)) == content_hash(pixels())


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((4, 4, 2), np.uint8), "shape"),
        (np.zeros((2, 4, 4, 3), np.uint8), "shape"),
        (np.zeros(4, np.uint8), "shape"),
        (np.zeros((0, 4, 3), np.uint8), "no pixels"),
        (np.zeros((4, 4), np.int64), "int64"),
        (np.full((4, 4), 255.0), "0, 1"),
        (np.full((4, 4), -0.5), "0, 1"),
        (np.full((4, 4), np.nan), "0, 1"),
        (np.array(["a", "b"]), "shape"),
    ],
)
def test_an_array_that_is_no_image_is_named(array, reason):
    with pytest.raises(ImageError, match=reason):
        open_image(array)


def test_the_image_returned_is_a_copy():
    rgb = pixels()
    for source in (rgb, Image.fromarray(rgb)):
        open_image(source).putpixel((0, 0), (1, 2, 3))
        assert np.array_equal(np.asarray(source), pixels())


@given(st.integers(0, 65535))
def test_16_bits_round_to_the_nearest_of_8(value):
    assert opened(np.full((1, 1), value, np.uint16))[0, 0, 0] == round(value / 257)


# --- what does not


@pytest.mark.parametrize("format", FORMATS)
def test_a_truncated_image_gets_a_named_error(format, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), format)
    path = tmp_path / "cut.img"
    for length in (12, 40, len(data) // 2, len(data) * 9 // 10):
        path.write_bytes(data[:length])
        with pytest.raises(ImageError, match=r"cut\.img.*(cut off|damaged)"):
            open_image(path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"just some words", "not an image"),
        (b"\0" * 500, "not an image"),
        (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
        (b"<!DOCTYPE html><HTML><body>404</body>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
        (b"%PDF-1.7 ...", "PDF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "PostScript"),
        (b"\0\0\0\x18ftypheic....", "HEIC"),
        (b"\0\0\0\x0cjP  \r\n\x87\n\0\0\0\x14ftypjp2 ....", "JPEG 2000"),
        (b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl ....", "JPEG XL"),
        (b"P6 1 1 255 abc", "not an image"),
        (png(0, 5, 8, 2), "no pixels"),
        (b"\x89PNG\r\n\x1a\nrubbish", "damaged"),
    ],
)
def test_bytes_that_are_no_image_are_called_what_they_are(data, reason, tmp_path):
    path = tmp_path / "odd.jpg"
    path.write_bytes(data)
    with pytest.raises(ImageError, match=reason) as caught:
        open_image(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ImageError, match=reason):
        open_image(data)


def test_a_missing_file_is_a_missing_file_error(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "broken.jpg").symlink_to(tmp_path / "nowhere.jpg")
    for path in (tmp_path / "no.jpg", tmp_path / "file" / "no.jpg", tmp_path / "broken.jpg"):
        for function in (open_image, content_hash):
            with pytest.raises(MissingFileError, match=path.name):
                function(path)
    with pytest.raises(MissingFileError, match=rf"it is a link to {tmp_path}/nowhere\.jpg, where nothing is"):
        open_image(tmp_path / "broken.jpg")


def test_a_folder_a_pipe_and_impossible_names_are_image_errors(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    cases = {
        tmp_path: "folder",
        tmp_path / "pipe.jpg": "regular",
        tmp_path / "loop.jpg": "symbolic links",
        tmp_path / ("x" * 300): "too long",
        "a\0b": "null",
    }
    for path, reason in cases.items():
        with pytest.raises(ImageError, match=reason):
            open_image(path)


def test_a_file_that_may_not_be_read_says_so(tmp_path):
    path = tmp_path / "secret.png"
    path.write_bytes(encoded(Image.fromarray(pixels()), "PNG"))
    path.chmod(0)
    with without_privileges(), pytest.raises(ImageError, match=r"secret\.png.*permission denied"):
        open_image(path)


def test_things_that_hold_no_image_are_named(tmp_path):
    for thing in (None, 3, [1, 2], {"a": 1}):
        with pytest.raises(ImageError, match=type(thing).__name__):
            open_image(thing)
    path = tmp_path / "a.txt"
    path.write_text("words")
    with path.open() as text, pytest.raises(ImageError, match="binary"):
        open_image(text)
    with path.open("rb") as closed:
        pass
    with pytest.raises(ImageError, match=r"a\.txt"):
        open_image(closed)
    with pytest.raises(ImageError, match="0 x 4"):
        open_image(Image.new("RGB", (0, 4)))


def test_a_pil_image_that_was_opened_from_a_truncated_file_is_an_image_error():
    data = encoded(Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)), "JPEG")
    with pytest.raises(ImageError, match="cut off"):
        open_image(Image.open(io.BytesIO(data[: len(data) // 2])))


@settings(max_examples=150, deadline=None)
@given(
    format=st.sampled_from(FORMATS),
    changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=8),
    keep=st.floats(0, 1),
)
def test_damaged_bytes_give_an_image_or_an_image_error_and_nothing_else(format, changes, keep):
    data = bytearray(encoded(Image.fromarray(pixels()), format))
    for where, value in changes:
        data[int(where * len(data))] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's remarks on damaged metadata
        try:
            image = open_image(bytes(data[: int(keep * len(data))]), max_pixels=1_000_000)
        except ImageError as error:
            assert str(error)  # noqa: PT017  either outcome is right
        else:
            assert image.mode == "RGB"


# --- the pixel limit


def test_an_image_above_the_limit_is_refused_before_it_is_decoded():
    bomb = png(50_000, 50_000, 8, 2)  # a header only: decoding would say that the data are cut off
    with pytest.raises(ImageError, match=r"50000 x 50000.*100,000,000.*max_pixels.*NEWFOUND_MAX_PIXELS"):
        open_image(bomb)
    assert MAX_PIXELS == 100_000_000


def test_the_limit_itself_is_allowed_and_can_be_set(monkeypatch):
    data = encoded(Image.fromarray(pixels()), "PNG")
    assert open_image(data, max_pixels=HEIGHT * WIDTH).size == (WIDTH, HEIGHT)
    for source in (data, Image.open(io.BytesIO(data))):
        with pytest.raises(ImageError, match="559"):
            open_image(source, max_pixels=HEIGHT * WIDTH - 1)
    monkeypatch.setenv("NEWFOUND_MAX_PIXELS", "559")
    with pytest.raises(ImageError, match="559"):
        open_image(data)
    assert open_image(data, max_pixels=10_000).size == (WIDTH, HEIGHT)


@pytest.mark.parametrize("value", ["many", "0", "-5", ""])
def test_a_limit_that_is_no_positive_number_is_a_settings_error(value, monkeypatch):
    monkeypatch.setenv("NEWFOUND_MAX_PIXELS", value)
    with pytest.raises(SettingsError, match="NEWFOUND_MAX_PIXELS"):
        open_image(pixels())
    with pytest.raises(SettingsError, match="max_pixels"):
        open_image(pixels(), max_pixels=0)


@pytest.mark.parametrize("pillows", [10, HEIGHT * WIDTH - 1])
def test_pillows_own_limit_neither_refuses_nor_warns_and_is_left_as_it_was(pillows, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pillows)
    samples = [encoded(Image.fromarray(pixels()), format) for format in FORMATS] * 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ThreadPoolExecutor(4) as pool:
            sizes = set(pool.map(lambda data: open_image(data).size, samples))
        with pytest.raises(ImageError):
            open_image(b"no image")
    assert sizes == {(WIDTH, HEIGHT)}
    assert pillows == Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize("pillows", [10, None])
def test_pillows_limit_never_turns_from_a_number_to_none_or_back(pillows, monkeypatch):
    """Pillow reads it twice: in a thread that crops meanwhile, a None between the two ended whole trainings."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pillows)
    seen = []

    def opening(*args, **kwargs):
        seen.append(Image.MAX_IMAGE_PIXELS)
        return pillows_open(*args, **kwargs)

    pillows_open = Image.open
    monkeypatch.setattr(Image, "open", opening)
    assert open_image(encoded(Image.fromarray(pixels()), "PNG")).size == (WIDTH, HEIGHT)
    assert [limit is None for limit in [*seen, Image.MAX_IMAGE_PIXELS]] == [pillows is None] * 2


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to see open files")
def test_no_file_is_left_open(tmp_path):
    image = Image.fromarray(pixels())
    several = encoded(image, "TIFF", save_all=True, append_images=[image])
    bomb = png(50_000, 50_000, 8, 2)
    contents = {"good.tif": several, "cut.tif": several[:300], "words.png": b"words", "bomb.png": bomb}
    outcomes = []
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        try:
            outcomes.append(open_image(tmp_path / name))
        except ImageError as error:
            outcomes.append(error)
        content_hash(tmp_path / name)
    assert [type(outcome) is ImageError for outcome in outcomes] == [False, True, True, True]
    still_open = {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
    assert not [path for path in still_open if path.startswith(str(tmp_path.resolve()))]


# --- hashes, thumbnails, folders


def test_the_hash_of_a_file_is_the_hash_of_its_bytes(tmp_path):
    data = encoded(Image.fromarray(pixels()), "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(data)
    expected = hashlib.blake2b(data, digest_size=16).hexdigest()
    assert len(expected) == 32
    for source in (path, str(path), data, io.BytesIO(data)):
        assert content_hash(source) == expected
    assert content_hash(data + b"\0") != expected


def test_the_hash_changes_with_everything_that_changes_the_picture():
    rgb = pixels()
    changed = rgb.copy()
    changed[3, 3, 1] ^= 1
    palettes = [Image.new("P", (2, 1)), Image.new("P", (2, 1)), Image.new("P", (2, 1))]
    palettes[0].putpalette([1, 2, 3])
    palettes[1].putpalette([3, 2, 1])
    palettes[2].putpalette([1, 2, 3])
    palettes[2].info["transparency"] = 0
    exif = Image.Exif()
    exif[0x0112] = 3
    turned = Image.open(io.BytesIO(encoded(Image.fromarray(rgb), "PNG", exif=exif)))
    arrays = [rgb, changed, rgb.reshape(WIDTH, HEIGHT, 3), rgb.view(np.int8), rgb[..., 0]]
    images = [Image.fromarray(array) for array in arrays if array.dtype == np.uint8]
    different = [*arrays, *images, images[0].convert("RGBA"), turned, rgb.tobytes(), *palettes]
    assert len({content_hash(source) for source in different}) == len(different)


def test_equal_arrays_and_images_have_equal_hashes():
    assert content_hash(np.asfortranarray(pixels())) == content_hash(pixels())
    assert content_hash(Image.fromarray(pixels()).copy()) == content_hash(Image.fromarray(pixels()))


def test_a_file_object_can_be_hashed_and_then_opened_from_where_it_was(tmp_path):
    data = encoded(Image.fromarray(pixels()), "PNG")
    (tmp_path / "joined").write_bytes(b"head" + data)
    with (tmp_path / "joined").open("rb") as file:
        file.seek(4)
        assert content_hash(file) == content_hash(data)
        assert np.array_equal(opened(file), pixels())
        assert not file.closed


def test_what_is_read_once_is_hashed_and_opened_as_it_was_and_called_by_its_name(tmp_path):
    path, other = tmp_path / "latest.png", tmp_path / "next.png"
    Image.new("RGB", (3, 2), "red").save(path)
    Image.new("RGB", (3, 2), "blue").save(other)
    held, before = read_once(path), content_hash(path)
    os.replace(other, path)
    assert content_hash(held) == before != content_hash(path)
    assert open_image(held).getpixel((0, 0)) == (255, 0, 0)
    path.write_bytes(b"no image")
    with pytest.raises(ImageError, match=r"cannot read .*latest\.png: it is not an image"):
        open_image(read_once(path))
    with pytest.raises(MissingFileError, match=r"gone\.png"):
        read_once(tmp_path / "gone.png")


def test_a_thumbnail_is_a_small_jpeg_of_the_same_shape():
    small = Image.open(io.BytesIO(thumbnail(Image.new("RGB", (400, 200), "teal"))))
    assert (small.format, small.size) == ("JPEG", (96, 48))
    assert Image.open(io.BytesIO(thumbnail(np.zeros((2, 3000), np.uint8), size=32))).size == (32, 1)
    assert Image.open(io.BytesIO(thumbnail(pixels()))).size == (WIDTH, HEIGHT)


def test_image_names_are_told_by_their_ending_in_any_case():
    yes = ["a.jpg", "a.JPG", "a.JpEg", "b.png", Path("c.webp"), "d.bmp", "e.TIF", "f.tiff", "g.Gif", "h.HEIC"]
    assert all(is_image_path(name) for name in yes)
    assert not any(is_image_path(name) for name in ["jpg", "a.txt", "a.jpg.part", ".jpg", "a.svg", ""])


def plant(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def listed(root: Path) -> list[str]:
    return [path.relative_to(root).as_posix() for path in find_images(root)]


def test_images_are_found_at_any_depth_in_a_fixed_order(tmp_path):
    plant(tmp_path, "b/2.JPG", "b/10.jpg", "a.png", "b/c/d/e.gif", "b.webp", "notes.txt", "B/x.bmp")
    assert listed(tmp_path) == ["B/x.bmp", "a.png", "b.webp", "b/10.jpg", "b/2.JPG", "b/c/d/e.gif"]
    assert find_images(str(tmp_path)) == find_images(tmp_path)


def test_pictures_of_other_formats_are_listed_so_that_each_gets_its_error(tmp_path):
    plant(tmp_path, "a.heic", "b.HEIF", "c.avif", "d.jp2", "e.jxl", "f.svg", "g.nef", "h.mov")
    assert listed(tmp_path) == ["a.heic", "b.HEIF", "c.avif", "d.jp2", "e.jxl"]


def test_hidden_files_and_folders_are_skipped_but_a_hidden_root_is_not(tmp_path):
    root = tmp_path / ".cache"
    plant(root, "a.png", ".b.png", "._c.jpg", ".git/d.png", "e/.f/g.png")
    assert listed(root) == ["a.png"]


def test_loops_of_links_come_to_an_end_and_dead_links_to_images_are_listed_so_that_each_gets_its_error(tmp_path):
    root = tmp_path / "data"
    plant(root, "a/1.png", "b/2.png")
    plant(tmp_path, "beside.png")
    (root / "a" / "up").symlink_to(root)
    (root / "a" / "above").symlink_to(tmp_path)
    (root / "a" / "self").symlink_to("self")
    (root / "b" / "a").symlink_to(root / "a")
    (root / "gone.png").symlink_to(root / "nowhere.png")
    (root / "itself.png").symlink_to("itself.png")
    (root / "gone").symlink_to(root / "nowhere")
    assert listed(root) == ["a/1.png", "b/2.png", "gone.png", "itself.png"]


def test_links_to_images_and_to_folders_elsewhere_are_followed(tmp_path):
    plant(tmp_path, "store/x/1.png", "store/2.png")
    root = tmp_path / "data"
    root.mkdir()
    (root / "z").symlink_to(tmp_path / "store")
    (root / "one.png").symlink_to(tmp_path / "store" / "2.png")
    assert listed(root) == ["one.png", "z/2.png", "z/x/1.png"]


def test_an_image_is_listed_under_its_own_folder_rather_than_under_a_link_to_it(tmp_path):
    for real, link in (("m/real", "z"), ("m/other", "a")):
        plant(tmp_path, f"{real}/1.png")
        (tmp_path / link).symlink_to(tmp_path / real)
    assert listed(tmp_path) == ["m/other/1.png", "m/real/1.png"]


def test_a_folder_that_cannot_be_listed_is_named(tmp_path):
    plant(tmp_path, "a.png", "locked/b.png")
    with pytest.raises(MissingFileError, match="nowhere"):
        find_images(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"a\.png is a file"):
        find_images(tmp_path / "a.png")
    (tmp_path / "locked").chmod(0)
    with without_privileges(), pytest.raises(DataError, match=r"(?i)permission denied"):
        find_images(tmp_path)
    (tmp_path / "locked").chmod(0o700)
