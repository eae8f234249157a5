"""Bytes to text: which encoding a file has, and its text as a stream."""

import codecs
import io
import re
from typing import BinaryIO

from malmoi.errors import InputError
from malmoi.messages import Flag
from malmoi.text.reading.sources import Source

CHUNK_BYTES = 1 << 20
# A line beyond this is no text but a file without line ends (assumption); it is refused before it
# is loaded, so that memory does not grow with it.
LONGEST_LINE_BYTES = 1 << 26
# As much as git looks at to tell text from binary.
HEAD_BYTES = 8000

# A CP949 file whose first bytes happen to spell this many Hangul syllables in UTF-8 is out of the
# question (assumption), so such a file is damaged UTF-8 and must not become mojibake.
CERTAIN_HANGUL = 3
_HANGUL = re.compile("[가-힣]")

# What stands for a byte that does not decode.
UNDECODED = re.compile("[\udc80-\udcff]")

_NAMES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp949": "CP949"}


def shown_encoding(encoding: str) -> str:
    """What messages call an encoding that `find_encoding` gives."""
    return _NAMES.get(encoding, encoding)


class UndecodedError(InputError):
    """Some bytes decode in no encoding that we know; the fewest do not in `encoding`."""

    encoding = ""


class TextFile:
    """A file that is text, read as often as somebody asks for its lines.

    Args:
        stream: its bytes; stays open.
        skip_undecoded: take a file with bytes that decode in no encoding, too; `UNDECODED` stands
            for each of them.

    Attributes:
        encoding: as `find_encoding` gives it.
        undecoded: what is wrong with it, where some bytes do not decode.

    Raises:
        InputError: as `find_encoding`.
    """

    def __init__(self, stream: BinaryIO, source: Source, *, skip_undecoded: bool = False) -> None:
        self._stream = stream
        self._text: io.TextIOWrapper | None = None
        self.undecoded: InputError | None = None
        try:
            self.encoding = find_encoding(stream, source)
        except UndecodedError as error:
            if not skip_undecoded or error.encoding == "utf-16":
                raise
            self.encoding, self.undecoded = error.encoding, error

    def lines(self, *, keep_newlines: bool = False) -> io.TextIOWrapper:
        r"""Its lines from the first one on; those that were given before end.

        Lines end with "\n", "\r\n" or "\r" and nothing else: U+2028 or a form feed stay inside one.

        Args:
            keep_newlines: leave the line ends as they are, as the `csv` module wants.
        """
        self.close()
        self._stream.seek(0)
        newline = "" if keep_newlines else None
        errors = "strict" if self.undecoded is None else "surrogateescape"
        self._text = io.TextIOWrapper(
            self._stream, encoding=self.encoding, errors=errors, newline=newline
        )
        return self._text

    def close(self) -> None:
        """Let go of the bytes, which stay open."""
        if self._text is not None:
            self._text.detach()
            self._text = None


def find_encoding(stream: BinaryIO, source: Source) -> str:
    """The encoding in which the whole file decodes, by one or two passes.

    Args:
        stream: its bytes, decompressed.

    Returns:
        "utf-16" or "utf-8-sig" for a byte order mark, else "utf-8", else "cp949", which covers
        EUC-KR.

    Raises:
        InputError: the file is empty, is not text, decodes in no encoding that we know, or has a
            line of more than 64 MiB.
    """
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    if not head:
        raise InputError("the file is empty; expected text in it", place=source.shown)
    candidates = _candidates(head)
    if not candidates:
        raise InputError(
            "not a text file (it holds NUL bytes and no UTF-16 mark); export it as UTF-8 text",
            place=source.shown,
        )
    furthest, furthest_encoding = -1, ""
    for encoding in candidates:
        bad_byte = _first_bad_byte(stream, source, encoding)
        if bad_byte is None:
            return encoding
        if bad_byte > furthest:
            furthest, furthest_encoding = bad_byte, encoding
        if encoding == "utf-8" and _decode_start(stream, encoding, bad_byte)[1] >= CERTAIN_HANGUL:
            break
    line = _decode_start(stream, furthest_encoding, furthest)[0]
    error = UndecodedError(
        "expected {tried: or } text, found bytes that are not; repair that line, save the file "
        "again as UTF-8, or leave such rows out by {skip}",
        place=f"{source.shown}:{line}",
        tried=[_NAMES[encoding] for encoding in candidates],
        skip=Flag("--skip-bad-rows"),
    )
    error.encoding = furthest_encoding
    raise error


def _candidates(head: bytes) -> tuple[str, ...]:
    # UTF-32's little-endian mark begins like UTF-16's; nobody asked for UTF-32.
    if head.startswith(codecs.BOM_UTF32_LE):
        return ()
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return ("utf-16",)
    if b"\0" in head:
        return ()
    if head.startswith(codecs.BOM_UTF8):
        return ("utf-8-sig",)
    return ("utf-8", "cp949")


def _decoder(encoding: str, errors: str = "strict") -> codecs.IncrementalDecoder:
    # "utf-8-sig" reports error positions counted after the mark; plain UTF-8 decodes the mark too.
    return codecs.getincrementaldecoder(encoding.removesuffix("-sig"))(errors)


def _first_bad_byte(stream: BinaryIO, source: Source, encoding: str) -> int | None:
    """The offset of the first byte that does not decode, or None."""
    decoder = _decoder(encoding)
    consumed = 0
    line_start = 0
    stream.seek(0)
    while True:
        chunk = stream.read(CHUNK_BYTES)
        if consumed + len(chunk) - line_start > LONGEST_LINE_BYTES:
            line = _decode_start(stream, encoding, line_start)[0]
            raise InputError(
                "expected lines of text, found one of more than {most} MiB; put each text on a "
                "line of its own",
                place=f"{source.shown}:{line}",
                most=LONGEST_LINE_BYTES >> 20,
            )
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            return consumed - pending + error.start
        if not chunk:
            return None
        consumed += len(chunk)
        # The text, not its bytes: in UTF-16 the byte of a line feed is half of other characters.
        # Where in the chunk the line begins does not matter, it is shorter than the bound.
        if "\n" in text or "\r" in text:
            line_start = consumed


def _decode_start(stream: BinaryIO, encoding: str, length: int) -> tuple[int, int]:
    """Decode the first `length` bytes: the line they end on, from 1, and their Hangul syllables."""
    decoder = io.IncrementalNewlineDecoder(_decoder(encoding, "replace"), translate=True)
    lines, hangul = 1, 0
    stream.seek(0)
    while True:
        chunk = stream.read(min(CHUNK_BYTES, length))
        length -= len(chunk)
        text = decoder.decode(chunk, final=not chunk)
        lines += text.count("\n")
        hangul += sum(1 for _ in _HANGUL.finditer(text))
        if not chunk:
            return lines, hangul
