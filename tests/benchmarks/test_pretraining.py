"""What is said of a backbone's past: true of the families used here, and nothing of the others."""

from __future__ import annotations

import pytest

from newfound.backbone import DEFAULT, backbones
from newfound.benchmarks.data import data_sets
from newfound.benchmarks.pretraining import in_words, overlap, pretrained_on


@pytest.mark.parametrize("name", backbones())
def test_the_past_of_every_tested_backbone_is_known(name):
    assert pretrained_on(name).startswith("trained on ")
    assert pretrained_on(name).endswith(".")


def test_a_name_without_a_tag_means_the_weights_that_timm_would_load():
    assert pretrained_on(DEFAULT) == pretrained_on(f"{DEFAULT}.in1k")
    assert "ImageNet-21k" in pretrained_on("vit_base_patch16_224")  # its default is augreg2_in21k_ft_in1k


def test_labels_are_told_from_mere_images():
    assert "with labels" in pretrained_on("tf_efficientnet_lite0.in1k")
    assert "without their labels" in pretrained_on("vit_base_patch16_224.dino")


def test_the_breeds_among_the_labels_are_named_beside_imagenet_weights():
    said = pretrained_on(DEFAULT)
    assert "pet breeds" in said
    assert "birds" in said
    assert "may not be new" in said


def test_what_came_first_is_said_first():
    said = pretrained_on("vit_base_patch16_clip_224.openai_ft_in12k_in1k")
    assert said.index("CLIP") < said.index("12,000") < said.index("1,000 classes")


@pytest.mark.parametrize(
    "name",
    ["tf_efficientnet_b0.ns_jft_in1k", "resnet50.fb_swsl_ig1b_ft_in1k", "no_such_model", ""],
)
def test_a_tag_with_an_unknown_part_is_not_guessed_at(name):
    assert "not known" in pretrained_on(name)
    assert overlap(name, "pets") == "Not known here."


def test_an_empty_tag_is_none():
    assert pretrained_on("vit_base_patch16_224.") == pretrained_on("vit_base_patch16_224")


def test_random_weights_have_seen_nothing_whatever_the_name():
    assert "nothing" in pretrained_on("vit_base_patch16_224.dino", "random")
    assert overlap("vit_base_patch16_224.dino", "imagenet100", "random").startswith("Nothing")


def test_a_file_of_weights_is_not_taken_for_the_backbones_own():
    file = "mine.safetensors (0a1b)"
    assert "not known" in pretrained_on(DEFAULT, file)
    assert file in pretrained_on(DEFAULT, file)
    assert overlap(DEFAULT, "pets", file) == "Not known here."
    assert pretrained_on(DEFAULT, "pretrained") == pretrained_on(DEFAULT)


def test_imagenet_labels_take_all_of_imagenet100_and_part_of_pets_and_cub():
    assert overlap(DEFAULT, "imagenet100").startswith("All its classes")
    assert "22 of its 25 dog breeds and 3 of its 12 cat breeds" in overlap(DEFAULT, "pets")
    assert overlap(DEFAULT, "cub").startswith("A few of its species")
    assert "no makes" in overlap(DEFAULT, "cars")


def test_in_words_both_are_told_where_something_is_known():
    past, of_pets = pretrained_on(DEFAULT), overlap(DEFAULT, "pets")
    assert in_words(DEFAULT, "pets") == f"{DEFAULT}: {past} pets: {of_pets}"
    assert in_words(DEFAULT, "own photos") == f"{DEFAULT}: {past}"
    for weights in ("random", "mine.safetensors (0a1b)"):
        assert in_words(DEFAULT, "pets", weights) == f"{DEFAULT}: {pretrained_on(DEFAULT, weights)}"


def test_the_pet_breeds_that_are_said_to_be_in_imagenet_are_there():
    from timm.data import ImageNetInfo

    names = ", ".join(ImageNetInfo("imagenet-1k").label_descriptions()).lower()
    dogs = (
        "pit bull terrier", "basset hound", "beagle", "boxer", "chihuahua", "english cocker spaniel", "english setter",
        "german short-haired pointer", "great pyrenees", "japanese spaniel", "keeshond", "leonberg",
        "miniature pinscher", "newfoundland dog", "pomeranian", "pug", "saint bernard", "samoyed", "scottish terrier",
        "staffordshire bull terrier", "wheaten terrier", "yorkshire terrier",
    )  # fmt: skip
    cats = ("egyptian cat", "persian cat", "siamese cat")
    assert (len(dogs), len(cats)) == (22, 3)
    assert [breed for breed in (*dogs, *cats) if breed not in names] == []
    absent = ("american bulldog", "havanese", "shiba", "abyssinian", "bengal", "birman", "ragdoll", "sphynx")
    assert [breed for breed in absent if breed in names] == []


@pytest.mark.parametrize("name", backbones())
@pytest.mark.parametrize("protocol", data_sets())
def test_every_tested_backbone_and_data_set_have_a_sentence(name, protocol):
    assert overlap(name, protocol).endswith(".")
    assert overlap(name, protocol) != "Not known here."
