"""The formats that are read, by the ending of a file's name; `tables.open_table` opens each."""

import codecs
from pathlib import PurePath

from malmoi.errors import InputError
from malmoi.messages import Phrase

TEXT_FORMATS = (".txt", ".csv", ".tsv", ".jsonl", ".json")
BINARY_FORMATS = (".parquet", ".arrow", ".xlsx")
COMPRESSIONS = (".gz", ".zst")
SUPPORTED = Phrase(
    "{texts:, } (each plain, {compressions: or }), {others:, } and {last}",
    texts=TEXT_FORMATS,
    compressions=COMPRESSIONS,
    others=BINARY_FORMATS[:-1],
    last=BINARY_FORMATS[-1],
)
# How files of a kind begin, what people call it, and the ending that such a file should have; ""
# where we read none.
_BEGINNINGS = (
    (b"PK\x03\x04", Phrase("an Excel workbook"), ".xlsx"),
    (b"PAR1", Phrase("a Parquet file"), ".parquet"),
    (b"ARROW1", Phrase("an Arrow file"), ".arrow"),
    (b"\x1f\x8b", Phrase("data compressed by gzip"), ".gz"),
    (b"\x28\xb5\x2f\xfd", Phrase("data compressed by Zstandard"), ".zst"),
    (
        b"\xd0\xcf\x11\xe0",
        Phrase("an old Excel workbook (.xls), or one with a password"),
        "",
    ),
    (b"%PDF-", Phrase("a PDF document"), ""),
)
_KINDS = {ending: kind for _, kind, ending in _BEGINNINGS if ending}
HEAD_BYTES = 4096


def refuse_another_kind(head: bytes, name: str, shown: str) -> None:
    """Refuse a file that begins as one of another kind than its name says.

    Args:
        name: its name, of a supported kind.
        shown: what the message calls it.

    Raises:
        InputError: it is of another kind; the message says of which, and how to name it.
    """
    file_format, compression = split_suffixes(name)
    expected = compression or file_format
    found = next((kind for kind in _BEGINNINGS if head.startswith(kind[0])), None)
    if found is None and expected in (*BINARY_FORMATS, *COMPRESSIONS) and _is_text(head):
        found = _kind_of_text(head)
    # What begins otherwise may be right: streams of Arrow begin with numbers.
    if found is None or found[2] == expected:
        return
    _, kind, ending = found
    if ending in COMPRESSIONS:
        ending = f"{file_format}{ending}"
    elif compression and ending in TEXT_FORMATS:
        ending = file_format
    stem = PurePath(shown).name.removesuffix(compression).removesuffix(file_format)
    raise InputError(
        "expected {expected} by its name, found {kind}; {advice}",
        place=shown,
        expected=_KINDS.get(expected, Phrase("text")),
        kind=kind,
        advice=Phrase("rename it to {name}", name=f"{stem}{ending}")
        if found[2]
        else Phrase("save it as .xlsx without a password, or as .csv"),
    )


def _kind_of_text(head: bytes) -> tuple[bytes, Phrase, str]:
    first = head.strip(b"\xef\xbb\xbf\r\n\t ")[:1]
    if first == b"<":
        return first, Phrase("a web page or XML"), ""
    return first, Phrase("text"), ".json" if first in (b"[", b"{") else ".csv"


def _is_text(head: bytes) -> bool:
    """Whether these first bytes are characters of UTF-8 or CP949, and none that controls."""
    for encoding in ("utf-8", "cp949"):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(head)
        except UnicodeDecodeError:
            continue
        return all(character >= " " or character in "\t\r\n" for character in text)
    return False


def split_suffixes(name: str) -> tuple[str, str]:
    """The format and compression suffixes: ("reviews.tsv.gz") -> (".tsv", ".gz")."""
    pure = PurePath(name.lower())
    if pure.suffix in COMPRESSIONS:
        return PurePath(pure.stem).suffix, pure.suffix
    return pure.suffix, ""


def is_supported(name: str) -> bool:
    """Whether a file of this name is one that we read."""
    file_format, compression = split_suffixes(name)
    return file_format in TEXT_FORMATS or (file_format in BINARY_FORMATS and not compression)


def require_supported(name: str, shown: str) -> None:
    """Refuse a name of another kind; `shown` is what the message calls it.

    Raises:
        InputError: it is of no kind that we read.
    """
    if not is_supported(name):
        raise InputError(
            "unsupported kind of file; expected {supported}; convert it to one of them",
            place=shown,
            supported=SUPPORTED,
        )
