"""Files that no server has as they are: how each is made of files of a repository.

A function gets the path and the content of each of those, and yields lines. They must not depend on
the order of the files, nor on the folders above the repository's own.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from malmoi.errors import InputError
from malmoi.text.public.held_out import HeldOutReviews

Members = Iterable[tuple[str, bytes]]

_HANGUL = re.compile("[가-힣]")


@contextmanager
def _expecting(what: str, name: str) -> Iterator[None]:
    """Name the file, and what is expected in it, where it has something else."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(
            "expected {what}, found something else ({error}); take its repository as it is",
            place=name,
            what=what,
            error=repr(error),
        ) from error


def curse_table(members: Members) -> Iterator[str]:
    """A table of the lines `TEXT|LABEL` of Curse-detection-data."""
    yield "text\tlabel\n"
    for name, content in members:
        for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
            text, bar, label = line.rpartition("|")
            with _expecting("a text, | and 0 or 1", f"{name}:{number}"):
                if not bar or label.strip() not in ("0", "1"):
                    raise ValueError(line)
            yield f"{_in_one_line(text)}\t{label.strip()}\n"


def dialogue_table(members: Members) -> Iterator[str]:
    """A table of who speaks and what in the dialogues of HG-TODS, each utterance once."""
    # The folder above tells files of one name apart.
    files = {"/".join(PurePosixPath(name).parts[-2:]): content for name, content in members}
    rows: dict[str, str] = {}
    for name in sorted(files):
        with _expecting("dialogues with turns", name):
            for speaker, text in _utterances(json.loads(files[name])):
                rows.setdefault(_in_one_line(text), speaker)
    yield "speaker\ttext\n"
    yield from (f"{speaker}\t{text}\n" for text, speaker in rows.items() if text)


def _utterances(content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, list):
        for turn in (turn for dialogue in content for turn in dialogue["turns"]):
            for speaker in ("user", "system"):
                yield speaker, turn[f"{speaker}_message"]
        return
    for dialogues in content["dial_data"].values():
        for turn in (turn for dialogue in dialogues for turn in dialogue["turns"]):
            yield turn["role"], turn["utterance"]


# Code and formulas between two such lines; quotes, tables, HTML, attributes, headings, footnotes.
_FENCE = re.compile(r"(```|~~~|\$\$\s*$)")
_OTHER = re.compile(r"([>|<#]|\{[:%]|\[\^)")
_LIST_MARK = re.compile(r"(?:[-*+]\s+|\d+[.)]\s+)+")
# What stands in a line, and what is left of it.
_MARKUP = (
    (re.compile(r"!\[[^\]]*\]\([^)]*\)|\[\^[^\]]*\]|\{[:#][^}]*\}|<[^>]*>"), ""),
    (re.compile(r"\[\[[^\]]*\]\]\{([^}]*)\}|\[\[(?:[^\]]*/)?([^\]/]*)\]\]"), r"\1\2"),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"`|\*\*"), ""),
)
# Shorter ones are the names of things (assumption).
_LEAST_HANGUL = 5


def note_lines(members: Members) -> Iterator[str]:
    """The lines of all public pages of johngrib.github.io, without code and quotes, each once."""
    pages = {_path_of_page(name): content for name, content in members}
    lines: dict[str, None] = {}
    for name in sorted(pages):
        with _expecting("a page that begins with its head between two lines of ---", name):
            start, _, rest = pages[name].decode("utf-8").partition("---\n")
            head, end, body = rest.partition("\n---\n")
            if start or not end:
                raise ValueError(start[:80])
        if re.search(r"^public\s*:\s*false", head, re.MULTILINE) is None:
            lines |= dict.fromkeys(_prose(body))
    yield from (f"{line}\n" for line in lines)


def _path_of_page(name: str) -> str:
    parts = PurePosixPath(name).parts
    first = next(i for i, part in enumerate(parts) if part in ("_wiki", "_posts"))
    return "/".join(parts[first:])


def _prose(body: str) -> Iterator[str]:
    fenced = False
    for line in map(str.strip, body.splitlines()):
        if _FENCE.match(line):
            fenced = not fenced
        elif not (fenced or _OTHER.match(line)):
            text = _LIST_MARK.sub("", line, count=1)
            for markup, left in _MARKUP:
                text = markup.sub(left, text)
            if len(_HANGUL.findall(text)) >= _LEAST_HANGUL:
                yield _in_one_line(text)


_MARK = re.compile(r"[#*>\-\s]*")


def tale_lines(members: Members) -> Iterator[str]:
    """The Korean lines of all tales of a learner's book, each once."""
    # Two editions of the book have files of the same names.
    files = {PurePosixPath(name).parts[-2:]: content for name, content in members}
    lines: dict[str, None] = {}
    for parts in sorted(files):
        for line in files[parts].decode("utf-8").splitlines():
            if _HANGUL.search(line):
                lines[_in_one_line(_MARK.sub("", line, count=1))] = None
    with _expecting("tales in Korean", ", ".join("/".join(parts) for parts in sorted(files))):
        if not lines:
            raise ValueError("none")
    yield from (f"{line}\n" for line in lines)


def rated_table(members: Members) -> Iterator[str]:
    """A table of NSMC's raw reviews without those that tests need: an array of them a movie.

    The reviews come by the number of their movie, in the order of its file.
    """
    held_out = HeldOutReviews()
    keys = ("review_id", "movie_id", "date", "rating", "review")
    movies: dict[int, list[str]] = {}
    for name, content in members:
        with _expecting(f"a movie's number as its name, in it {', '.join(keys)}", name):
            reviews = json.loads(content)
            rows = [[_in_one_line(review[key]) for key in keys] for review in reviews]
            movie = int(PurePosixPath(name).stem)
        allowed = (row for row in rows if not held_out.holds(row[0], row[-1]))
        movies[movie] = ["\t".join(row) + "\n" for row in allowed]
    yield "id\tmovie_id\tdate\trating\tdocument\n"
    for movie in sorted(movies):
        yield from movies[movie]


def review_table(members: Members) -> Iterator[str]:
    """A table of later reviews that say something which no test review says."""
    held_out = HeldOutReviews()
    yield "id\trating\treview\n"
    for name, content in members:
        with _expecting("a table with id, review and score", name):
            rows = [
                (row["id"], int(float(row["score"])), _in_one_line(row["review"]))
                for row in csv.DictReader(io.StringIO(content.decode("utf-8")))
            ]
        for review_id, rating, text in rows:
            if text and not held_out.holds(review_id, text):
                yield f"{review_id}\t{rating}\t{text}\n"


_TITLES = "data/petition_data.csv"


def title_table(members: Members) -> Iterator[str]:
    """A table of category and title of petitions, as they stand in a .zip."""
    yield "category\ttitle\n"
    for name, content in members:
        with _expecting(f"a .zip with {_TITLES} and in it category and title", name):
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                table = packed.read(_TITLES).decode("utf-8-sig")
            rows = csv.DictReader(io.StringIO(table))
            pairs = [(row["category"], _in_one_line(row["title"])) for row in rows]
        yield from (f"{category}\t{title}\n" for category, title in pairs if title)


# Whose speeches the released encoders read; those before them are in an older language.
_PRESIDENTS = ("김대중", "노무현", "이명박")
# With a space after it or, as often, without; 한.미 and 2.5 end no sentence.
_SENTENCE_END = re.compile(
    r"(?<=[가-힣]{2}[.!?])(?=\s)|(?<=[다요까오][.!?])(?=[^\s.!?,’”\"')\]])|\n"
)


def speech_table(members: Members) -> Iterator[str]:
    """A table of presidents and the sentences of their speeches."""
    # As it is needed: every command reads what sources there are.
    import pyarrow.parquet

    yield "president\ttext\n"
    columns = ["division_number", "president", "speech_text"]
    for name, content in members:
        with _expecting(f"a table with {', '.join(columns)}", name):
            table = pyarrow.parquet.read_table(io.BytesIO(content), columns=columns)
            speeches = table.sort_by("division_number").to_pylist()
        for speech in speeches:
            if speech["president"] in _PRESIDENTS:
                texts = map(_in_one_line, _SENTENCE_END.split(speech["speech_text"]))
                yield from (f"{speech['president']}\t{text}\n" for text in texts if text)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


MADE_BY: dict[str, Callable[[Members], Iterator[str]]] = {
    made.__name__: made
    for made in (
        *(curse_table, dialogue_table, note_lines, tale_lines),
        *(rated_table, review_table, title_table, speech_table),
    )
}
