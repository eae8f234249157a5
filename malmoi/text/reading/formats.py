"""The formats that are read, by the ending of a file's name; `tables.open_table` opens each."""

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
