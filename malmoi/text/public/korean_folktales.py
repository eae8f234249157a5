"""Korean folk tales as a learner's book retells them, with questions on each."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from malmoi.errors import InputError
from malmoi.text.public.description import Making, PublicSource, RemoteFile

_COMMIT = "ce1b7f8a0be2630750f74c3f8b6cdb09ff2428cf"
_MARK = re.compile(r"[#*>\-\s]*")
_HANGUL = re.compile("[가-힣]")


def tale_lines(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """The Korean lines of all tales, each once, white space collapsed.

    Raises:
        InputError: there is none.
    """
    # Two editions of the book have files of the same names.
    files = {PurePosixPath(name).parts[-2:]: content for name, content in members}
    lines: dict[str, None] = {}
    for parts in sorted(files):
        for line in files[parts].decode("utf-8").splitlines():
            if _HANGUL.search(line):
                lines[" ".join(_MARK.sub("", line, count=1).split())] = None
    if not lines:
        raise InputError(
            f"{', '.join('/'.join(parts) for parts in sorted(files))}: expected tales in Korean, "
            "found none; take https://github.com/trungngv/languages as it is"
        )
    yield from (f"{line}\n" for line in lines)


SOURCE = PublicSource(
    name="korean_folktales",
    about="folk tales as a learner's book retells them, and questions on them, a line each",
    homepage="https://github.com/trungngv/languages",
    licence="Apache 2.0",
    licence_note="of the repository; the Korean reads as if a program had translated it",
    citation="Trung Nguyen (2024). https://github.com/trungngv/languages",
    labels="none",
    texts=1_911,
    files=(
        # Size and SHA-256 computed here from the files of the repository at that commit.
        RemoteFile(
            name="tales.txt",
            url=f"https://github.com/trungngv/languages/archive/{_COMMIT}.tar.gz",
            sha256="fe6c600cc4964815ef2d3317c9f9b2c56233eb9dbf4dbfabeb4ab1fc1adcfce3",
            size=289_897,
            making=Making(members=("books/korean_folktales/v*/*.md",), make=tale_lines),
        ),
    ),
)
