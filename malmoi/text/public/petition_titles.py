"""Titles of petitions to the Blue House, with the category that the petitioner chose."""

import csv
import io
import zipfile
from collections.abc import Iterator
from urllib.parse import quote

from malmoi.errors import InputError
from malmoi.text.public.description import Layout, Making, PublicSource, RemoteFile

_COMMIT = "20c048312ac76b58b295d77564a7a3fba27c7138"
_ZIP = "국민 청원 게시글 데이터를 활용한 감성 분석/data/data.zip"
_TABLE = "data/petition_data.csv"


def title_table(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """A table of category and title, as they stand in the archive, white space collapsed.

    Raises:
        InputError: the archive has no such table.
    """
    yield "category\ttitle\n"
    for name, content in members:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                rows = csv.DictReader(io.StringIO(packed.read(_TABLE).decode("utf-8-sig")))
                pairs = [(row["category"], " ".join(row["title"].split())) for row in rows]
        except (zipfile.BadZipFile, KeyError, AttributeError, ValueError) as error:
            raise InputError(
                f"{name}: expected a .zip with {_TABLE} and in it category and title, found "
                f"something else ({error!r}); take "
                "https://github.com/choi-jiwoo/21-1-data-analytics-in-R as it is"
            ) from error
        yield from (f"{category}\t{title}\n" for category, title in pairs if title)


SOURCE = PublicSource(
    name="petition_titles",
    about="titles of petitions to the Blue House that ended from April 2019 to January 2021",
    homepage="https://github.com/choi-jiwoo/21-1-data-analytics-in-R",
    licence="public record (KOGL)",
    licence_note="the repository, which collected them from the Blue House's pages, says MIT",
    citation="choi jiwoo (2021). https://github.com/choi-jiwoo/21-1-data-analytics-in-R",
    labels="the category that the petitioner chose, such as 육아/교육",
    texts=85_848,
    files=(
        # Size and SHA-256 computed here from data.zip of the repository at that commit.
        RemoteFile(
            name="titles.tsv",
            url=(
                "https://raw.githubusercontent.com/choi-jiwoo/21-1-data-analytics-in-R/"
                f"{_COMMIT}/{quote(_ZIP)}"
            ),
            sha256="d842b49c627e12d13f2d2a74b42fcafd9995a30818ef61cda6a9d4f815ee5e2d",
            size=6_943_076,
            layout=Layout(texts=("title",), label="category"),
            making=Making(members=(_ZIP,), make=title_table),
        ),
    ),
)
