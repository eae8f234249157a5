"""Naver movie reviews of March 2022 with their ratings, later than all of NSMC's."""

import csv
import io
from collections.abc import Iterator

from malmoi.errors import InputError
from malmoi.text.public.description import Layout, Making, PublicSource, RemoteFile
from malmoi.text.public.held_out import HeldOutReviews

_URL = (
    "https://raw.githubusercontent.com/lee-jee-hyeon/knu_nlp_project/"
    "e6f8da389d6b419e5529aa4a1485d236ce9ef374/data/reviews_1647645839.csv"
)


def review_table(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """A table of the reviews that say something which no test review says, white space collapsed.

    Raises:
        InputError: a member has no reviews with their ratings.
    """
    held_out = HeldOutReviews()
    yield "id\trating\treview\n"
    for name, content in members:
        try:
            for row in csv.DictReader(io.StringIO(content.decode("utf-8"))):
                text, rating = " ".join(row["review"].split()), int(float(row["score"]))
                if text and not held_out.holds(row["id"], text):
                    yield f"{row['id']}\t{rating}\t{text}\n"
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{name}: expected a table with id, review and score, found something else "
                f"({error!r}); take https://github.com/lee-jee-hyeon/knu_nlp_project as it is"
            ) from error


SOURCE = PublicSource(
    name="naver_movies",
    about=(
        "Naver movie reviews of March 2022 with ratings, without what a review of NSMC's rebuilt "
        "test file says, too"
    ),
    homepage="https://github.com/lee-jee-hyeon/knu_nlp_project",
    licence="MIT",
    licence_note="of the students who collected the reviews",
    citation=(
        "DongHoon Kim et al. (2022). https://github.com/lee-jee-hyeon/knu_nlp_project (경북대 "
        "빅데이터 분석가 양성과정)"
    ),
    labels="the rating, 1 to 10",
    texts=9_352,
    files=(
        # Size and SHA-256 computed here from reviews_1647645839.csv of the repository at that
        # commit.
        RemoteFile(
            name="naver_2022.tsv",
            url=_URL,
            sha256="ef43815031270a964fda38fe597bf75907d460a0c16f9b7b9e2b4fe7115a369e",
            size=1_328_776,
            layout=Layout(texts=("review",), label="rating"),
            making=Making(members=("reviews_1647645839.csv",), make=review_table),
        ),
    ),
)
