"""Make the released checkpoints anew: an encoder, and the app's two classifiers.

    make release DATA=PATH
    python -m lab.release.make --data PATH --minutes 150 --output PATH
    python -m lab.release.make --data PATH --init checkpoints/malmoi-small --output PATH
    python -m lab.release.make --data PATH --check
    python -m lab.release.make --data PATH --classifiers reviews,memos
    python -m lab.release.make --cards

You need `reviews_rated.tsv`, packed (.gz) or not, somewhere below --data: `malmoi fetch nsmc_rated
--output PATH/nsmc_rated` makes it of the raw release of e9t/nsmc (film reviews with ratings from 1
to 10), without the reviews of this project's test files. It is a table with tabs, without quotes,
with the columns id, movie_id, date, rating, document; the recipe runs with any such file. The
released encoders read the same reviews in another order; --check insists on that order. It repeats
the released encoder by its record, which an earlier recipe may have made.
Everything else is downloaded where --data lacks it.

Each stage is kept under runs/release when it is done: a clean corpus; the reviews to classify; the
encoder, in as many sittings as it needs; a classifier of film ratings, from which the one of
reviews starts; the classifiers of reviews and of memos, in cross-validation; last, all at once,
malmoi-small and the two classifiers, in half precision, with a short card each
(lab/release/cards.py), which you complete by hand. The classifier of reviews begins as
checkpoints/malmoi-medium, whatever encoder is made. With --init the encoder goes on from another
one, such as the released one, instead of beginning anew.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

from lab.release.public_texts import REVIEWS
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.pretrain.config.defaults import PresetName

ABOUT = f"""Make the released checkpoints anew: an encoder, and the app's two classifiers. Needs
{REVIEWS}, which `malmoi fetch nsmc_rated` makes: the raw release of e9t/nsmc without the reviews of
this project's test files (a table with tabs; columns id, movie_id, date, rating, document). With
another such file the recipe runs, but gives other models."""

# Tasks of the released classifiers.
CLASSIFIED = ("reviews", "memos")
TOKENS = 80e6


@dataclass(kw_only=True)
class ReleaseSettings:
    """Where the texts are, and how long to go on."""

    data: Path = Path("data")
    """Folder with reviews_rated.tsv somewhere below it; a source of which it has not all is
    downloaded."""
    tokens: float | None = None
    """Tokens that the encoder sees in all, 80 million by default; with --init, besides those that
    it has seen before."""
    minutes: float = 150
    """Length of this sitting's pre-training; the same command goes on with the next."""
    init: Path | None = None
    """Encoder, such as checkpoints/malmoi-small, to go on from, with its tokenizer, instead of
    beginning with word vectors; a released one needs another folder as --output."""
    preset: PresetName | None = None
    """Size of the encoder, tiny by default. With --init it says only learning rate and batch, by
    default those that suit that encoder."""
    reviews_per_label: int = 1_000
    """Rated film reviews of each label, beside the written ones of everything else; 0: none."""
    work: Path = Path("runs/release")
    """Folder of what is under way."""
    output: Path = Path("checkpoints")
    """Folder to release into, without a release; with --check, --classifiers or --cards
    the one of the release."""
    check: bool = False
    """Only pre-train the first 500 steps again and hold their losses against the record's; of an
    encoder that went on from another one, with that one as --init."""
    classifiers: str | None = None
    """Comma-separated, of reviews and memos: only make these again, from the released encoders, and
    put them in the place of the released ones."""
    cards: bool = False
    """Only write the numbers in the cards again, with what the benchmarks found since."""

    def check_values(self) -> None:
        """Raise InputError for the first value out of bounds, echoing it."""
        for flag, value, low in (
            ("tokens", self.planned, 1),
            ("minutes", self.minutes, 0.01),
            ("reviews-per-label", self.reviews_per_label, 0),
        ):
            if not low <= value < math.inf:
                raise InputError(f"expected --{flag} of at least {low:g}, found {value:g}")
        parts = ("check", "classifiers", "cards")
        given = [f"--{name}" for name in parts if getattr(self, name)]
        if len(given) > 1:
            raise InputError(f"expected one of {' and '.join(given)}, found {len(given)} of them")
        for flag, free in (("init", ["--check"]), ("preset", [])):
            if getattr(self, flag) is not None and given not in ([], free):
                raise InputError(
                    f"--{flag} is of an encoder that is to be trained, and {given[0]} takes the "
                    f"released one as it is; leave --{flag} out"
                )
        for task in self.tasks():
            if task not in CLASSIFIED or self.tasks().count(task) > 1:
                raise InputError(f"expected --classifiers of reviews,memos, found {task!r}")

    @property
    def planned(self) -> float:
        """Tokens that a new encoder sees."""
        return TOKENS if self.tokens is None else self.tokens

    def tasks(self) -> list[str]:
        """The classifiers to make."""
        return list(CLASSIFIED) if self.classifiers is None else self.classifiers.split(",")


def main(settings: ReleaseSettings) -> None:
    """Go on where the last sitting stopped."""
    from lab.release.making import make

    make(settings)


if __name__ == "__main__":
    sys.exit(run_command(ReleaseSettings, main, ABOUT))
