"""Pictures show a run's own features and what its own creator makes of them, at their true places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from newfound.benchmarks import run_pictures as drawn
from newfound.creation import MKEE, make_creator
from newfound.datasets import load_dataset
from newfound.errors import DataError, SettingsError
from newfound.features import unit
from newfound.images import open_image

matplotlib = pytest.importorskip("matplotlib", reason="newfound[bench] is not installed")
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def labelled(pictures):
    """Five pictures of each kind that `tiny_run` knows."""
    return load_dataset(pictures(kinds=3))


@pytest.fixture
def steps(monkeypatch):
    """What MKEE is given and gives: pairs of x_mix and x_pus, as they are made."""
    seen = []
    real = MKEE.perturb

    def perturb(self, x_mix, model, reference):
        seen.append((x_mix, real(self, x_mix, model, reference)))
        return seen[-1][1]

    monkeypatch.setattr(MKEE, "perturb", perturb)
    return seen


def picked(drawing, kind: str) -> list[dict]:
    return [row for row in drawing.rows if row["kind"] == kind]


def places(rows: list[dict], x: str = "x", y: str = "y") -> np.ndarray:
    return np.array([(row[x], row[y]) for row in rows])


def tokens_of(run, data) -> torch.Tensor:
    return run.encoder.backbone.trunk(torch.stack([run.encoder.views.centre(open_image(item)) for item in data.items]))


def arrows(drawing):
    (found,) = [a for a in drawing.figure.axes[0].collections if isinstance(a, matplotlib.quiver.Quiver)]
    return found


def legend(drawing) -> list[str]:
    return [text.get_text() for text in drawing.figure.legends[0].get_texts()]


@pytest.mark.parametrize("space", ["tokens", "pixels"])
def test_every_point_is_what_the_encoder_gives_projected_on_one_plane(tiny_run, labelled, steps, monkeypatch, space):
    monkeypatch.setattr(tiny_run.method, "settings", replace(tiny_run.method.settings, space=space, cached=False))
    drawing = drawn.perturbation(tiny_run, labelled, samples=15, classes=3)
    ((x_mix, x_pus),) = steps
    assert x_mix.ndim == 4
    assert (x_mix.shape[1] == 3) == (space == "pixels")

    def features(inputs: torch.Tensor) -> np.ndarray:
        if space == "tokens":
            return tiny_run.encoder.tail(list(inputs))
        with torch.no_grad():
            return tiny_run.method.read(unit(tiny_run.encoder.backbone(inputs)), tiny_run.known).numpy()

    known, prototypes = tiny_run.encoder.features(labelled.items), tiny_run.known["prototypes"]
    fitted = np.concatenate([known, prototypes])
    axes = np.linalg.svd(fitted - fitted.mean(axis=0), full_matrices=False)[2][:2]
    shown = {
        "known": places(picked(drawing, "known")), "prototypes": places(picked(drawing, "prototype")),
        "mix": places(picked(drawing, "created")), "pus": places(picked(drawing, "created"), "to_x", "to_y"),
    }  # fmt: skip
    true = {"known": known, "prototypes": prototypes, "mix": features(x_mix), "pus": features(x_pus)}
    sign = np.sign(shown["known"][0] * (axes @ (known[0] - fitted.mean(axis=0))))  # an axis may point either way
    for name, rows in true.items():
        np.testing.assert_allclose(sign * shown[name], (rows - fitted.mean(axis=0)) @ axes.T, atol=2e-3, err_msg=name)
    moved = np.linalg.norm(true["pus"] - true["mix"], axis=1)
    np.testing.assert_allclose([row["moved"] for row in picked(drawing, "created")], moved, atol=1e-5)


def test_a_run_that_weighs_evidence_is_drawn_in_its_readings(fit_tiny, pictures, labelled):
    run = fit_tiny(pictures(kinds=3), dictionary="bayesian", centre=False, threshold=10.0)
    drawing = drawn.perturbation(run, labelled, samples=15, classes=3)
    assert len(picked(drawing, "prototype")) == 3
    known = run.encoder.features(labelled.items)
    names = np.array(labelled.labels)
    means = np.stack([known[names == name].mean(axis=0) for name in run.classes])
    between = np.linalg.norm(means[0] - means[1])
    shown = places(picked(drawing, "prototype"))
    assert 0 < np.linalg.norm(shown[0] - shown[1]) <= between * 1.001
    assert drawn.tsne(run, labelled, samples=15, classes=3).rows


def test_features_that_a_creator_draws_are_shown_as_they_are(fit_tiny, pictures, labelled):
    run = fit_tiny(pictures(kinds=3), creator="between")
    assert len(picked(drawn.tsne(run, labelled, samples=15, classes=3), "created")) == 15


def test_an_anchor_is_the_blend_of_two_classes_that_its_row_says(tiny_run, labelled, steps):
    drawing = drawn.perturbation(tiny_run, labelled, samples=15, classes=3)
    tokens = tokens_of(tiny_run, labelled)
    for row, x_mix in zip(picked(drawing, "created"), steps[0][0], strict=True):
        assert row["class"] != row["partner"]
        assert 0 <= row["share"] <= 1
        first, second = (tokens[[label == row[which] for label in labelled.labels]] for which in ("class", "partner"))
        blends = row["share"] * first[:, None] + (1 - row["share"]) * second[None]
        assert (blends - x_mix).flatten(2).norm(dim=2).min() < 1e-4 * x_mix.norm()


def test_there_is_an_arrow_for_each_sample_from_x_mix_on(tiny_run, labelled):
    drawing = drawn.perturbation(tiny_run, labelled, samples=9, classes=3)
    created = picked(drawing, "created")
    found = arrows(drawing)
    assert found.N == len(created) == len(picked(drawing, "known")) == 9
    np.testing.assert_allclose(found.get_offsets(), places(created))


@pytest.mark.parametrize(("eps", "longer"), [(1e-4, True), (0.5, False)])
def test_arrows_that_are_longer_than_the_steps_say_by_how_much(tiny_run, labelled, monkeypatch, eps, longer):
    monkeypatch.setattr(tiny_run.method, "creator", MKEE(eps=eps, relative_step=True))
    drawing = drawn.perturbation(tiny_run, labelled, samples=15, classes=3)
    (label,) = [text for text in legend(drawing) if "pus" in text]
    factor = int(label.split("× ")[1].strip(")").replace(",", "")) if "×" in label else 1
    assert (factor > 1) is longer
    assert (f"{factor:,} times as long" in drawing.caption) is longer
    created = picked(drawing, "created")
    true = places(created, "to_x", "to_y") - places(created)
    np.testing.assert_allclose(np.stack([arrows(drawing).U, arrows(drawing).V], axis=1), factor * true, rtol=1e-5)


def test_a_step_of_no_length_is_drawn_as_none(tiny_run, labelled, monkeypatch):
    monkeypatch.setattr(tiny_run.method, "creator", MKEE(eps=0.0))
    drawing = drawn.perturbation(tiny_run, labelled, samples=15, classes=3)
    assert {row["moved"] for row in picked(drawing, "created")} == {0.0}
    assert not np.any([arrows(drawing).U, arrows(drawing).V])


def test_entropy_is_the_creators_own_objective_and_a_small_step_raises_it(tiny_run, labelled, steps, monkeypatch):
    creator = MKEE(eps=1e-3, relative_step=True, density=False)
    monkeypatch.setattr(tiny_run.method, "creator", creator)
    created = picked(drawn.perturbation(tiny_run, labelled, samples=15, classes=3), "created")
    model = drawn.Model(encode=lambda x: unit(tiny_run.encoder.backbone.tail(x)), classify=tiny_run.method.head)
    for inputs, column in zip(steps[0], ("entropy", "to_entropy"), strict=True):
        with torch.no_grad():
            entropy = creator.objective(model.encode(inputs), model, inputs)
        np.testing.assert_allclose([row[column] for row in created], entropy.numpy(), rtol=1e-5)
    assert np.mean([row["to_entropy"] - row["entropy"] for row in created]) > 0


def test_density_before_and_after_is_measured_with_one_bandwidth(tiny_run, labelled, steps, monkeypatch):
    monkeypatch.setattr(tiny_run.method, "creator", MKEE(eps=0.1, relative_step=True))
    created = picked(drawn.perturbation(tiny_run, labelled, samples=15, classes=3), "created")
    with torch.no_grad():
        inputs = (tokens_of(tiny_run, labelled), *steps[0])
        reference, *moving = (unit(tiny_run.encoder.backbone.tail(x)).double().numpy() for x in inputs)
    distances = np.linalg.norm(np.concatenate(moving)[:, None] - reference, axis=2)
    bandwidth = np.quantile(distances, 0.5, method="lower")
    densities = np.exp(-((distances / bandwidth) ** 2) / 2).mean(axis=1)  # Eq. 9
    shown = [row["density"] for row in created] + [row["to_density"] for row in created]
    np.testing.assert_allclose(shown, densities, rtol=1e-6)


def test_a_tsne_shows_each_known_and_each_created_sample_once(tiny_run, labelled):
    drawing = drawn.tsne(tiny_run, labelled, samples=12, classes=3)
    assert (len(picked(drawing, "known")), len(picked(drawing, "created"))) == (12, 12)
    *known, created = [line.get_xydata() for line in drawing.figure.axes[0].lines]
    for name, shown in zip(tiny_run.classes, known, strict=True):
        np.testing.assert_array_equal(shown, places([row for row in picked(drawing, "known") if row["class"] == name]))
    np.testing.assert_array_equal(created, places(picked(drawing, "created")))
    assert legend(drawing) == ["kind0", "kind1", "kind2", "pseudo-novel"]


def test_the_same_seed_draws_the_same_picture_and_another_seed_another(tiny_run, labelled, tmp_path):
    before = dict(matplotlib.rcParams)
    first, again, other = (drawn.tsne(tiny_run, labelled, samples=9, classes=3, seed=seed) for seed in (0, 0, 1))
    assert first.rows == again.rows != other.rows
    assert first.save(tmp_path / "a")[1].read_bytes() == again.save(tmp_path / "b")[1].read_bytes()
    assert dict(matplotlib.rcParams) == before


def test_a_tsne_can_be_made_of_what_any_creator_makes(tiny_run, labelled, monkeypatch):
    monkeypatch.setattr(tiny_run.method, "creator", make_creator("mixup"))
    assert "Mixup" in drawn.tsne(tiny_run, labelled, samples=9, classes=2).caption


def test_a_run_that_creates_nothing_has_no_picture(tiny_run, labelled, monkeypatch):
    monkeypatch.setattr(tiny_run.method, "creator", None)
    for draw in (drawn.perturbation, drawn.tsne):
        with pytest.raises(SettingsError, match="such as ltc"):
            draw(tiny_run, labelled)


def test_a_creator_that_takes_no_step_has_no_steps_to_show(tiny_run, labelled, monkeypatch):
    monkeypatch.setattr(tiny_run.method, "creator", make_creator("mixup"))
    with pytest.raises(SettingsError, match=r"Mixup, which takes no step.*creator=mkee"):
        drawn.perturbation(tiny_run, labelled)


@pytest.mark.parametrize("classes", [1, 11])
def test_as_many_classes_are_shown_as_can_be_told_apart(tiny_run, labelled, classes):
    with pytest.raises(SettingsError, match=f"classes={classes}: choose 2 to 10"):
        drawn.tsne(tiny_run, labelled, classes=classes)


def test_images_without_two_of_the_runs_classes_are_refused(tiny_run, labelled):
    with pytest.raises(DataError, match="no class named 'kind0'"):
        drawn.perturbation(tiny_run, labelled.of_classes(["kind1", "kind2"]), classes=2)
    with pytest.raises(DataError, match=r"samples=1.*two classes"):
        drawn.perturbation(tiny_run, labelled, samples=1, classes=2)
