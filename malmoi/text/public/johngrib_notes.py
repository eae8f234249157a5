"""The notes of a programmer's blog, johngrib.github.io, without code and without what it quotes."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from malmoi.errors import InputError
from malmoi.text.public.description import Making, PublicSource, RemoteFile

_COMMIT = "609a331749e0cbaba2dd4749eab84d1cdfc618f2"
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
_HANGUL = re.compile("[가-힣]")
# Shorter ones are the names of things (assumption).
_LEAST_HANGUL = 5


def note_lines(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """The lines of all public pages, each once, white space collapsed.

    Raises:
        InputError: a page has no head.
    """
    # By what stands from the repository's own folders on: the lines must not depend on the rest.
    pages = {_path(name): content.decode("utf-8") for name, content in members}
    lines: dict[str, None] = {}
    for name in sorted(pages):
        start, _, rest = pages[name].partition("---\n")
        head, end, body = rest.partition("\n---\n")
        if start or not end:
            raise InputError(
                f"{name}: expected a page that begins with its head between two lines of ---, "
                "found none; take https://github.com/johngrib/johngrib.github.io as it is"
            )
        if re.search(r"^public\s*:\s*false", head, re.MULTILINE) is None:
            lines |= dict.fromkeys(_prose(body))
    yield from (f"{line}\n" for line in lines)


def _path(name: str) -> str:
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
                yield " ".join(text.split())


SOURCE = PublicSource(
    name="johngrib_notes",
    about="notes of a programmer's blog, mostly on programming and books, a line each",
    homepage="https://github.com/johngrib/johngrib.github.io",
    licence="MIT",
    licence_note=(
        "of the blog's author; marked quotes are left out, but some pages translate the "
        "documentation of others"
    ),
    citation="이종립 (2017-2026). https://johngrib.github.io",
    labels="none",
    texts=47_485,
    files=(
        # Size and SHA-256 computed here from the repository's pages at that commit.
        RemoteFile(
            name="notes.txt",
            url=f"https://github.com/johngrib/johngrib.github.io/archive/{_COMMIT}.tar.gz",
            sha256="700df5fe954cadc3a332bd24d77e44479de0366b1b778cf424942ec92be7bd07",
            size=5_496_406,
            making=Making(
                members=(
                    *(f"_wiki/{'*/' * depth}*.md" for depth in range(4)),
                    "_posts/*/*.md",
                ),
                make=note_lines,
            ),
        ),
    ),
)
