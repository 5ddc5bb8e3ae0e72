"""The benchmarks' data sets: what each is, which of its images the protocol takes, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

from newfound.benchmarks.splits import known_classes, protocols


@dataclass(frozen=True)
class Archive:
    """A file that can be fetched without asking anybody, and the folder under the root that it is unpacked into."""

    url: str
    md5: str
    into: str = "."


@dataclass(frozen=True)
class DataSet:
    """A benchmark's data set.

    Args:
        name: that of its protocol in `splits.json`.
        title: what people call it.
        split: the official split whose images the protocol takes.
        folders: the folder names it is looked for under, the one to be preferred first.
        home: the official page.
        files: the official files that are needed.
        layout: what is in the folder once they are unpacked.
        images: how many images that split has; None where no official figure says so.
        paper: the sizes of the labelled set and the stream in the paper, in thousands; None if it has none.
        paper_classes: the number of classes in the paper, where it is not the true one.
        below: the share of the paper's sizes that may be missing, where its figures are an upper bound.
        licence: as its owners state it; None if they state none.
        note: what a reader of the paper's table should know.
        archives: what `download` fetches; empty if a person has to.
    """

    name: str
    title: str
    split: str
    folders: tuple[str, ...]
    home: str
    files: str
    layout: str
    images: int | None = None
    paper: tuple[float, float] | None = None
    paper_classes: int | None = None
    below: float = 0.0
    licence: str | None = None
    note: str = ""
    archives: tuple[Archive, ...] = ()

    @property
    def classes(self) -> int:
        return protocols()[self.name]

    @property
    def known(self) -> int:
        """How many classes the protocol calls known."""
        return len(known_classes(self.name, [str(number) for number in range(self.classes)]))

    def where(self, root: str) -> str:
        """Where to get it and where to put it, as a sentence."""
        return (
            f"Get {self.files} from {self.home} and unpack all, so that {root}/{self.folders[0]} holds {self.layout}; "
            f"or put its {self.split} images into {root}/{self.name}, in one folder a class."
        )


_KRIZ = "https://www.cs.toronto.edu/~kriz"
_PETS = "https://www.robots.ox.ac.uk/~vgg/data/pets"
_NO_PICKLES = "(the binary version: the Python version is made of pickles, which newfound never opens)"


def _inaturalist(group: str, images: int) -> DataSet:
    return DataSet(
        name=f"inat2017_{group.lower()}",
        title=f"iNaturalist 2017, {group}",
        split="training and validation",
        folders=("inat2017", f"inat2017_{group.lower()}", "iNat2017", "inaturalist2017"),
        home="https://github.com/visipedia/inat_comp/tree/master/2017",
        files="train_val_images.tar.gz",
        layout=f"train_val_images/{group}/ with a folder for each species",
        images=images,
        licence="each image its own, most of them Creative Commons; the competition's terms: non-commercial research",
        note="PHE's benchmark; the paper has no figures for it",
    )


DATA_SETS = {
    data_set.name: data_set
    for data_set in (
        DataSet(
            name="cub",
            title="CUB-200-2011",
            split="train",
            folders=("cub", "CUB_200_2011", "CUB"),
            home="https://www.vision.caltech.edu/datasets/cub_200_2011/",
            files="CUB_200_2011.tgz",
            layout="images/, images.txt, classes.txt, image_class_labels.txt and train_test_split.txt",
            images=5_994,
            paper=(1.5, 4.5),
            licence="non-commercial research",
        ),
        DataSet(
            name="cars",
            title="Stanford Cars",
            split="train",
            folders=("cars", "stanford_cars", "stanford-cars"),
            home="a mirror (the original host, https://ai.stanford.edu/~jkrause/cars/car_dataset.html, is gone)",
            files="cars_train.tgz and car_devkit.tgz",
            layout="cars_train/, devkit/cars_train_annos.mat and devkit/cars_meta.mat",
            images=8_144,
            paper=(2.0, 6.1),
        ),
        DataSet(
            name="pets",
            title="Oxford-IIIT Pet",
            split="trainval",
            folders=("pets", "oxford-iiit-pet", "oxford_pets"),
            home=f"{_PETS}/",
            files="images.tar.gz and annotations.tar.gz",
            layout="images/ and annotations/trainval.txt",
            images=3_680,
            paper=(0.9, 2.7),
            paper_classes=38,
            licence="CC BY-SA 4.0",
            archives=(
                Archive(f"{_PETS}/data/images.tar.gz", "5c4f3ee8e5d25df40f4fd59a7f44e54c", "oxford-iiit-pet"),
                Archive(f"{_PETS}/data/annotations.tar.gz", "95a8c909bbe2e81eed6a22bccdf3f68f", "oxford-iiit-pet"),
            ),
        ),
        DataSet(
            name="food101",
            title="Food-101",
            split="train",
            folders=("food101", "food-101"),
            home="https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
            files="food-101.tar.gz",
            layout="images/ and meta/train.txt",
            images=75_750,  # 750 of each of 101 classes
            paper=(19.1, 56.6),
            licence="the pictures belong to their owners on Foodspotting; scientific fair use",
            archives=(
                Archive("http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz", "85eeb15f3717b99a5da872d97d918f87"),
            ),
        ),
        DataSet(
            name="cifar10",
            title="CIFAR-10",
            split="train",
            folders=("cifar10", "cifar-10-batches-bin", "cifar-10"),
            home=f"{_KRIZ}/cifar.html",
            files=f"cifar-10-binary.tar.gz {_NO_PICKLES}",
            layout="data_batch_1.bin to data_batch_5.bin and batches.meta.txt",
            images=50_000,
            paper=(12.5, 37.5),
            archives=(Archive(f"{_KRIZ}/cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530"),),
        ),
        DataSet(
            name="cifar100",
            title="CIFAR-100",
            split="train",
            folders=("cifar100", "cifar-100-binary", "cifar-100"),
            home=f"{_KRIZ}/cifar.html",
            files=f"cifar-100-binary.tar.gz {_NO_PICKLES}",
            layout="train.bin and fine_label_names.txt",
            images=50_000,
            paper=(12.5, 37.5),
            note="50 known classes as the paper says; its figures and released code have 80: 20.0K / 30.0K",
            archives=(Archive(f"{_KRIZ}/cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8"),),
        ),
        DataSet(
            name="imagenet100",
            title="ImageNet-100",
            split="train",
            folders=("imagenet100", "imagenet-100", "imagenet", "ILSVRC2012"),
            home="https://image-net.org/download.php",
            files="ILSVRC2012_img_train.tar",
            layout="train/ with a folder for each of 100 synsets (or of more, and a synsets.txt that lists the 100)",
            paper=(32.5, 97.5),
            below=0.05,
            licence="non-commercial research and education, on ImageNet's terms of access",
            note="the paper's sizes are 100 classes of 1,300 images, the most that a class has; most draws of 100 "
            "classes have fewer, and the paper does not say which 100 it took",
        ),
        # How many images a super-category has is in the competition's table.
        _inaturalist("Animalia", 6_590),
        _inaturalist("Arachnida", 5_959),
        _inaturalist("Fungi", 7_606),
        _inaturalist("Mollusca", 9_377),
    )
}


def data_sets() -> dict[str, DataSet]:
    """The data sets of all benchmarks, by the name of their protocol."""
    return dict(DATA_SETS)
