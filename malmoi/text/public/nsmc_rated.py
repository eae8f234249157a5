"""NSMC's raw release: Naver movie reviews with their ratings, without those that tests need."""

import json
from collections.abc import Iterator
from pathlib import PurePosixPath

from malmoi.errors import InputError
from malmoi.text.public.description import Layout, Making, PublicSource, RemoteFile, Variant
from malmoi.text.public.held_out import HeldOutReviews

_COMMIT = "cc0670e872d4ac27bfe36c87456783004b39ef6c"
_COLUMNS = ("id", "movie_id", "date", "rating", "document")


def rated_table(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """Lines of the table of all reviews that may be learnt from.

    Args:
        members: `raw/MOVIE.json` and its content, an array of reviews, for each movie.

    Yields:
        A header, then the reviews by the number of their movie, in the order of its file; columns
        with tabs between, without quotes, white space in texts collapsed.

    Raises:
        InputError: a file has something else.
    """
    held_out = HeldOutReviews()
    movies: dict[int, list[str]] = {}
    for name, content in members:
        try:
            rows = [_row(review) for review in json.loads(content)]
            movie = int(PurePosixPath(name).stem)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{name}: expected a movie's number as its name and in it reviews with review_id, "
                f"movie_id, date, rating and review, found something else ({error!r}); take "
                "https://github.com/e9t/nsmc as it is"
            ) from error
        allowed = (row for row in rows if not held_out.holds(row[0], row[-1]))
        movies[movie] = ["\t".join(row) + "\n" for row in allowed]
    yield "\t".join(_COLUMNS) + "\n"
    for movie in sorted(movies):
        yield from movies[movie]


def _row(review: dict[str, str]) -> list[str]:
    cells = (review[key] for key in ("review_id", "movie_id", "date", "rating", "review"))
    return [" ".join(cell.split()) for cell in cells]


SOURCE = PublicSource(
    name="nsmc_rated",
    about=(
        "Naver movie reviews with ratings, NSMC's raw release without the reviews of its rebuilt "
        "test file"
    ),
    homepage="https://github.com/e9t/nsmc",
    licence="CC0 1.0",
    citation=("Lucy Park (2016). Naver Sentiment Movie Corpus v1.0. https://github.com/e9t/nsmc"),
    labels="the rating, 1 to 10",
    texts=615_199,
    files=(
        # Size and SHA-256 computed here from the repository's 14,730 raw files at that commit,
        # all of which could be had; the mirror's table has the same rows.
        RemoteFile(
            name="reviews_rated.tsv",
            url=f"https://github.com/e9t/nsmc/archive/{_COMMIT}.tar.gz",
            sha256="965d5e538d4a5acef4c6693e92a4e3020be6cb7937ba2be30c1f5307443c1386",
            size=69_786_845,
            variants=(
                Variant(
                    sha256="ab161c8b33ff9856fef34e06d8b2cbc7e9bd4dca5fd6e9abbc83d839ad755386",
                    size=69_786_845,
                    note="the same reviews in the order that the released encoders read them in",
                ),
            ),
            layout=Layout(texts=("document",), label="rating"),
            making=Making(members=("raw/*.json",), make=rated_table),
        ),
    ),
)
