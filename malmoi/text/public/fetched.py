"""What lies in a folder that was fetched: its `SOURCE.json`, and how its files are read."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from malmoi.errors import InputError
from malmoi.files import write_at_once
from malmoi.text.public.catalog import sources
from malmoi.text.public.description import Layout
from malmoi.text.reading.sources import Source

SOURCE_FILE = "SOURCE.json"


@dataclass(kw_only=True, slots=True)
class FetchedFile:
    """One fetched file.

    Attributes:
        url: where it came from, or would have come from.
        sha256: of the file as it lies there.
        size: in bytes.
        note: what is special about it, such as that it is a known variant.
    """

    url: str
    sha256: str
    size: int
    note: str = ""


@dataclass(kw_only=True, slots=True)
class Fetched:
    """The content of `SOURCE.json`.

    Attributes:
        source: the name of the source.
        homepage: where it is described.
        licence: its licence.
        citation: how its authors want it cited.
        files: what has been fetched so far, by name.
    """

    source: str
    homepage: str
    licence: str
    citation: str
    files: dict[str, FetchedFile] = field(default_factory=dict)


def read_fetched(folder: Path) -> Fetched | None:
    """What was fetched into a folder, None where no `SOURCE.json` stands.

    Raises:
        InputError: the file there is not one of ours, or is damaged.
    """
    path = folder / SOURCE_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    try:
        files = {name: FetchedFile(**file) for name, file in content.pop("files").items()}
        return Fetched(**content, files=files)
    except (AttributeError, KeyError, TypeError) as error:
        raise _damaged(path, str(error)) from error


def write_fetched(folder: Path, fetched: Fetched) -> None:
    """Write `SOURCE.json`, whole or not at all."""
    text = json.dumps(asdict(fetched), ensure_ascii=False, indent=2)
    write_at_once(folder / SOURCE_FILE, text + "\n")


def layout_of(source: Source) -> Layout | None:
    """How a file is read, if it lies in a fetched folder and its source says so.

    Raises:
        InputError: the `SOURCE.json` of its folder is damaged.
    """
    if source.path is None:
        return None
    path = source.path.absolute()  # seen from inside the folder too
    # Files lie in the source's folder or one folder below it.
    for folder in list(path.parents)[:2]:
        fetched = read_fetched(folder)
        if fetched is not None:
            known = sources().get(fetched.source)
            name = path.relative_to(folder).as_posix()
            return known.layouts.get(name) if known else None
    return None


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        "expected what `malmoi fetch` writes, found something else ({reason}); delete it and "
        "fetch again",
        place=path,
        reason=reason,
    )
