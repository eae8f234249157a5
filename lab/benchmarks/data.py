"""The public texts that benchmarks measure on: found below a folder, or named in one line.

`malmoi fetch NAME` writes a source into `data/NAME`, which is where benchmarks look by default.
Another folder is named by `--data`, or once for all by the variable MALMOI_DATA. A file is told by
its own name, compressed or not, and by the name of its source, which stands somewhere in its path.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from malmoi.errors import InputError
from malmoi.files import walk_once

DATA_VARIABLE = "MALMOI_DATA"
_COMPRESSIONS = ("", ".gz", ".zst")


@dataclass(kw_only=True)
class DataSettings:
    """Where the public texts are."""

    data: Path | None = None
    """Folder of public texts, as `malmoi fetch NAME` writes them. By default that of the variable
    MALMOI_DATA, else data."""

    @property
    def folder(self) -> Path:
        """The folder to look in."""
        return self.data or Path(os.environ.get(DATA_VARIABLE) or "data")


@dataclass(frozen=True)
class DataFile:
    """A file of a public source.

    Attributes:
        source: as `malmoi fetch` calls it.
        names: what the file may be called.
        remedy: how to come by it; by default, to fetch its source.
    """

    source: str
    names: tuple[str, ...]
    remedy: str = ""

    @property
    def name(self) -> str:
        """What the file is called here."""
        return self.names[0]

    def find(self, folder: Path) -> Path:
        """Where it lies below a folder; the first in alphabetical order if there are several.

        Raises:
            InputError: it is not there.
        """
        wanted = {name + ending for name in self.names for ending in _COMPRESSIONS}
        place = Path(folder.resolve().name)
        found = sorted(
            root / name
            for root, _, names in walk_once(folder)
            for name in names
            if name in wanted and self._is_of(place / root.relative_to(folder) / name)
        )
        if not found:
            remedy = self.remedy or f"malmoi fetch {self.source}, or --data FOLDER"
            raise InputError(f"expected {self.name} below {folder}, found none; {remedy}")
        return found[0]

    def _is_of(self, path: Path) -> bool:
        return any(self.source in part for part in path.parts)


def _of(source: str, *names: str) -> DataFile:
    return DataFile(source, names)


NSMC_TRAIN = _of("nsmc", "ratings_train.txt")
NSMC_TEST = _of("nsmc", "ratings_test.txt")
_NOT_PUBLISHED = (
    "it is made of the raw release of e9t/nsmc (see checkpoints/malmoi-small/README.md); name its "
    "folder by --data FOLDER"
)
RATED_REVIEWS = DataFile(
    "nsmc", ("reviews_rated.tsv",), "malmoi fetch nsmc_rated, or --data FOLDER"
)
THREE_CLASSES_TEST = DataFile("nsmc", ("sentiment3_test.tsv",), _NOT_PUBLISHED)
HATE_TRAIN = _of("korean_hate_speech", "train.tsv")
HATE_DEV = _of("korean_hate_speech", "dev.tsv")
KOTE_VAL = _of("kote", "val.tsv")
KOTE_TEST = _of("kote", "test.tsv")
KORSTS = {part: _of("korsts", f"sts-{part}.tsv") for part in ("train", "dev", "test")}
QUESTIONS = {part: _of("question_pair", f"{part}.tsv") for part in ("train", "dev", "test")}
NEWS_COMMENTS = _of(
    "korean_hate_speech", "unlabeled_comments_5.txt", "korean_hate_speech_unlabeled_5.txt"
)
PETITIONS = {
    month: _of("petitions", f"petitions_{month}.jsonl")
    for month in ("2017-08", "2019-04", "2019-05", "2019-06", "2019-07", "2019-08")
}
