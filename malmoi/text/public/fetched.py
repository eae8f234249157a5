"""What lies in a folder that was fetched: its `SOURCE.json`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from malmoi.files import write_at_once
from malmoi.text.reading.layouts import SOURCE_FILE, damaged_source_file, read_source_file


@dataclass(kw_only=True, slots=True)
class FetchedFile:
    """One fetched file.

    Attributes:
        url: where it came from, or would have come from.
        sha256: of the file as it lies there.
        size: in bytes.
        note: what is special about it, such as that it is a known variant.
        layout: how it is read; None: as any file of its kind.
    """

    url: str
    sha256: str
    size: int
    note: str = ""
    layout: Mapping[str, Any] | None = None


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
    content = read_source_file(folder)
    if content is None:
        return None
    try:
        files = {name: FetchedFile(**file) for name, file in content.pop("files").items()}
        return Fetched(**content, files=files)
    except (AttributeError, KeyError, TypeError) as error:
        raise damaged_source_file(folder, error) from error


def write_fetched(folder: Path, fetched: Fetched) -> None:
    """Write `SOURCE.json`, whole or not at all."""
    text = json.dumps(asdict(fetched), ensure_ascii=False, indent=2)
    write_at_once(folder / SOURCE_FILE, text + "\n")
