"""Names from words: what is nearest is proposed, what is sure is given, and nothing is ever taken from a person."""

from __future__ import annotations

import inspect
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow
from tiny_clip import make_tiny_clip

from newfound import naming
from newfound.clip import checkpoint_of
from newfound.curator import Curator
from newfound.discovery import PrototypeDictionary
from newfound.errors import DataError, MissingFileError, SettingsError
from newfound.images import content_of
from newfound.journal import Journal
from newfound.journal.answers import Image
from newfound.journal.book import Book
from newfound.journal.catalogue import Catalogue

COLOURS = {"poppy": (255, 0, 0), "grass": (0, 255, 0), "sky": (0, 0, 255), "ash": (60, 60, 60)}
SHAPES = 8


class ColourTowers:
    """A picture is its mean colour, a sentence the colour of the thing that it names."""

    scale = 10.0

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.seen: list[int] = []

    def pictures(self, images):
        self.seen.append(len(images))
        return self._unit([np.asarray(image, np.float64).mean(axis=(0, 1)) for image in images])

    def words(self, texts):
        self.sentences += texts
        return self._unit([next(c for word, c in COLOURS.items() if word in text) for text in texts])

    @staticmethod
    def _unit(rows):
        rows = np.array(rows, np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def journal(tmp_path) -> Path:
    """A run's folder whose journal knows "owl" (0) and has found red (1), green (2) and another red thing (3)."""
    folder = tmp_path / "run"
    folder.mkdir()
    taught = Book(PrototypeDictionary(np.eye(SHAPES)[:1], 0.8), Catalogue(["owl"]))
    with Journal.open(folder / "journal.db") as opened:
        about = {"method": "ltc", "backbone": "tf_efficientnet_lite0"}
        opened.begin("0123456789abcdef", about, taught.to_bytes())
    colours = [(90, 90, 90), (250, 5, 0), (240, 0, 10), (10, 240, 5), (200, 60, 0)]
    paths = []
    for number, colour in enumerate(colours):
        paths.append(tmp_path / f"{number}.png")
        Pillow.new("RGB", (8 + number, 8), colour).save(paths[-1])
    with Curator(Journal.open(folder / "journal.db"), actor="ada") as curator:
        images = [Image(str(path), content_of(path)) for path in paths]
        found = curator.keeper.enter(images, np.eye(SHAPES)[[0, 1, 1, 2, 3]])
        assert [one.row.category for one in found] == [0, 1, 1, 2, 3]
    return folder


@pytest.fixture
def curator(journal):
    with Curator(Journal.open(journal / "journal.db"), actor="ada") as opened:
        yield opened


def proposed(curator, *categories, **options):
    options = {"towers": ColourTowers()} | options
    return naming.propose(curator, list(COLOURS), categories or None, **options)


def test_the_word_that_is_nearest_is_proposed_first(curator):
    proposals = proposed(curator)
    assert [(p.category, p.suggestions[0].name) for p in proposals] == [(1, "poppy"), (2, "grass"), (3, "poppy")]
    assert [(p.called, p.count, p.images, p.named) for p in proposals[:2]] == [
        ("new-1", 2, 2, False), ("new-2", 1, 1, False),
    ]  # fmt: skip
    assert [c.name for c in curator.categories()] == ["owl", "new-1", "new-2", "new-3"]


def test_scores_are_the_cosine_and_a_softmax_over_all_words(curator):
    """Category 3 is one picture of (200, 60, 0); the ash of (60, 60, 60) points to (1, 1, 1) / sqrt(3)."""
    (proposal,) = proposed(curator, 3, top=4)
    length = math.hypot(200, 60)
    cosines = {"poppy": 200 / length, "ash": 260 / length / math.sqrt(3), "grass": 60 / length, "sky": 0.0}
    total = sum(math.exp(10 * cosine) for cosine in cosines.values())
    assert [s.name for s in proposal.suggestions] == ["poppy", "ash", "grass", "sky"]
    for suggestion in proposal.suggestions:
        assert suggestion.cosine == pytest.approx(cosines[suggestion.name], abs=1e-6)
        assert suggestion.probability == pytest.approx(math.exp(10 * cosines[suggestion.name]) / total, abs=1e-6)


def test_a_category_is_the_mean_of_its_pictures_and_a_word_that_of_its_sentences(curator):
    class Flipping(ColourTowers):
        def words(self, texts):
            return super().words([text.replace("not a poppy", "sky") for text in texts])

    (proposal,) = proposed(curator, 1, towers=Flipping(), templates=["a {}", "not a {}"])
    score = {s.name: s.cosine for s in proposal.suggestions}
    one, other = np.array([250, 5, 0]) / math.hypot(250, 5), np.array([240, 0, 10]) / math.hypot(240, 10)
    centre = (one + other) / np.linalg.norm(one + other)
    assert score["poppy"] == pytest.approx((centre[0] + centre[2]) / math.sqrt(2), abs=1e-6)


def test_all_templates_are_asked_with_all_words(curator):
    towers = ColourTowers()
    proposed(curator, towers=towers, templates=["a {}.", "two {}, and {} again."])
    assert len(towers.sentences) == 2 * len(COLOURS)
    assert {"a sky.", "two sky, and sky again."} <= set(towers.sentences)


def test_categories_are_chosen_by_id_by_size_and_by_not_being_ignored(curator):
    assert [p.category for p in proposed(curator, at_least=2)] == [1]
    curator.ignore(2)
    assert [p.category for p in proposed(curator)] == [1, 3]
    curator.merge([1, 3])
    assert [(p.category, p.images) for p in proposed(curator, 3)] == [(1, 3)]
    assert [(p.category, p.named) for p in proposed(curator, 0)] == [(0, True)]


def test_at_most_so_many_pictures_are_looked_at(curator):
    towers = ColourTowers()
    assert proposed(curator, 1, towers=towers, images=1)[0].images == 1
    assert towers.seen == [1]


def test_images_that_are_gone_are_passed_over(curator, tmp_path):
    (tmp_path / "1.png").unlink()
    (tmp_path / "3.png").write_bytes(b"no picture")
    one, other, _ = proposed(curator)
    assert (one.count, one.images, one.suggestions[0].name) == (2, 1, "poppy")
    assert (other.images, other.suggestions) == (0, ())
    assert naming.give_names(curator, [other], bar=0) == {}


def test_an_image_whose_name_is_no_text_is_looked_at(curator, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.png")
    Pillow.new("RGB", (9, 8), COLOURS["sky"]).save(path)
    curator.keeper.enter([Image(path, content_of(path))], np.eye(SHAPES)[[4]])
    (proposal,) = proposed(curator, 4)
    assert (proposal.images, proposal.suggestions[0].name) == (1, "sky")


def test_no_name_is_given_twice_and_the_surest_gets_it(curator):
    assert naming.give_names(curator, proposed(curator)) == {1: "poppy", 2: "grass"}
    assert [c.name for c in curator.categories()] == ["owl", "poppy", "grass", "new-3"]
    assert naming.give_names(curator, proposed(curator)) == {}


def test_the_name_of_a_known_class_is_not_given_to_a_discovery(curator):
    curator.rename(0, "grass")
    assert naming.give_names(curator, proposed(curator)) == {1: "poppy"}


def test_only_names_that_reach_the_bar_are_given(curator):
    proposals = proposed(curator)
    best = max(p.suggestions[0].probability for p in proposals)
    assert naming.give_names(curator, proposals, bar=min(1.0, best + 1e-9)) == {}
    assert list(naming.give_names(curator, proposals, bar=best).values()) == ["poppy"]
    with pytest.raises(SettingsError, match="bar=2"):
        naming.give_names(curator, proposals, bar=2)


def test_a_name_that_a_person_gives_meanwhile_stays(curator, journal):
    proposals = proposed(curator)
    with Curator(Journal.open(journal / "journal.db"), actor="bo") as other:
        other.rename(1, "tulip")
    assert naming.give_names(curator, proposals) == {2: "grass", 3: "poppy"}
    assert curator.category(1).name == "tulip"
    assert naming.give_names(curator, proposed(curator, 1), bar=0) == {}


def test_names_are_events_that_say_who_gave_them_and_can_be_taken_back(curator):
    naming.give_names(curator, proposed(curator))
    events = [event for event in curator.events() if event.kind == "renamed"]
    assert [(e.actor, e.details["name"]) for e in events] == [(naming.ACTOR, "poppy"), (naming.ACTOR, "grass")]
    curator.undo(events[-1].number)
    assert [c.name for c in curator.categories()] == ["owl", "poppy", "new-2", "new-3"]


def test_a_discoverer_proposes_names_for_images_that_are_no_files(tiny_run, picture):
    d = tiny_run.discoverer()
    d.observe([picture(3, number) for number in range(60, 63)])
    proposals = d.propose_names(COLOURS, towers=ColourTowers())
    assert proposals
    assert all(p.images == p.count for p in proposals)
    assert naming.give_names(d, proposals, bar=0)
    assert [c.name for c in d.categories()[:3]] == ["kind0", "kind1", "kind2"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5)))
def test_a_vocabulary_is_its_names_in_order_each_once(lines):
    wanted = [line.strip() for line in lines if line.strip()]
    if len(set(wanted)) < 2:
        with pytest.raises(DataError, match="at least two"):
            naming.read_vocabulary(lines)
    else:
        names = naming.read_vocabulary(lines)
        assert set(names) == set(wanted)
        assert len(names) == len(set(names))
        assert [wanted.index(name) for name in names] == sorted(wanted.index(name) for name in names)


def test_a_vocabulary_file_is_text_with_one_name_a_line(tmp_path):
    file = tmp_path / "names.txt"
    file.write_bytes("\ufeffgrey heron\r\n\n  Möwe \ngrey heron\n".encode())
    assert naming.read_vocabulary(file) == ["grey heron", "Möwe"]
    file.write_bytes(b"\xff\xfe\x00bird")
    with pytest.raises(DataError, match=r"names\.txt cannot be read as text"):
        naming.read_vocabulary(str(file))
    with pytest.raises(MissingFileError, match="there is no vocabulary"):
        naming.read_vocabulary(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("options", "message"), [({"top": 0}, "top=0"), ({"images": 0}, "images=0"), ({"templates": ["bird"]}, "no {}")]
)
def test_settings_that_make_no_sense_are_refused(curator, options, message):
    with pytest.raises(SettingsError, match=message):
        proposed(curator, **options)


def test_a_backbone_without_words_says_what_would_work(curator):
    with pytest.raises(SettingsError, match="tf_efficientnet_lite0 has no text tower") as error:
        naming.propose(curator, ["heron", "owl"])
    assert checkpoint_of(str(error.value).split()[-1].rstrip(".")) == "ViT-B-16/openai"
    assert "--clip ViT-B-16/openai" in str(error.value)


@pytest.fixture(scope="module")
def tiny_clip(tmp_path_factory) -> tuple[str, Path]:
    pytest.importorskip("open_clip", reason="newfound[naming] is not installed")
    return make_tiny_clip(tmp_path_factory.mktemp("clip"))


@pytest.fixture
def command(journal, tiny_clip, tmp_path):
    """command(*options): `newfound categories RUN name` with the tiny CLIP."""
    from typer.testing import CliRunner

    from newfound.cli import app

    words = tmp_path / "words.txt"
    words.write_text("\n".join(COLOURS))
    name, file = tiny_clip

    def call(*options: str):
        asked = ["categories", str(journal), "name", "--vocabulary", str(words), "--clip", name, "--weights", str(file)]
        return CliRunner().invoke(app, [*asked, *options], prog_name="newfound")

    return call


def test_the_command_shows_the_best_names_and_changes_nothing(command, curator):
    result = command()
    assert result.exit_code == 0, result.stderr
    assert all(word in result.stdout for word in ("new-1", "new-2", "poppy", "cosine"))
    told = json.loads(command("--json", "--top", "2", "1", "2").stdout)
    assert [(line["category"], len(line["suggestions"])) for line in told] == [(1, 2), (2, 2)]
    assert [line["given"] for line in told] == [None, None]
    assert 0 <= told[0]["suggestions"][1]["probability"] <= told[0]["suggestions"][0]["probability"] <= 1
    assert [c.name for c in curator.categories()] == ["owl", "new-1", "new-2", "new-3"]


def test_the_command_gives_names_when_it_is_asked_to(command, curator):
    curator.rename(1, "tulip")
    result = command("--apply", "--bar", "0", "--json")
    given = {line["category"]: line["given"] for line in json.loads(result.stdout)}
    assert set(given) == {2, 3}
    assert "named now, of 2" in result.stderr
    for category, name in given.items():
        assert curator.category(category).name == (name or "new-3")
    assert curator.category(1).name == "tulip"
    assert {e.actor for e in curator.events() if e.kind == "renamed"} == {"ada", naming.ACTOR}


def test_the_command_and_the_library_have_the_same_bar():
    from newfound.cli.naming import name

    assert inspect.signature(name).parameters["bar"].default == naming.BAR


def test_large_photos_are_held_a_few_at_a_time(curator, tmp_path, monkeypatch):
    monkeypatch.setattr(naming, "_AT_ONCE", 1)
    towers = ColourTowers()
    (proposal,) = proposed(curator, 1, towers=towers)
    assert (towers.seen, proposal.images) == ([1, 1], 2)
    assert proposal.suggestions == proposed(curator, 1)[0].suggestions


def test_no_template_at_all_is_refused(curator):
    with pytest.raises(SettingsError, match="template"):
        proposed(curator, templates=[])
