"""Names in a journal: any file's name can be stored, and leads back to the file."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newfound.journal.rows import as_path, as_text


@given(st.binary(max_size=20).filter(lambda name: not {0, ord("\\")} & set(name)))
def test_the_name_of_any_file_is_found_again(name):
    path = "/nowhere/" + os.fsdecode(name)
    stored = as_text(path)
    assert stored.encode("utf-8")
    assert as_path(stored) == path


@pytest.mark.parametrize("text", [r"C:\photos\udder.jpg", r"a\udc7f.jpg", r"a\xe9.jpg", "s3://bucket/a.jpg"])
def test_what_is_no_spelled_out_byte_stays(text):
    assert as_path(text) == text


def test_a_file_that_has_the_very_name_is_meant_by_it(tmp_path):
    path = tmp_path / r"caf\udce9.png"
    assert os.fsencode(as_path(str(path))).endswith(b"caf\xe9.png")
    path.touch()
    assert as_path(str(path)) == str(path)
