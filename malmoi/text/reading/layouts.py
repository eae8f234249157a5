"""How the files of a public source are read: what `malmoi fetch` writes beside them says so."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from malmoi.errors import InputError
from malmoi.text.reading.sources import Source

SOURCE_FILE = "SOURCE.json"
# Names of labels that a message shows.
_SHOWN = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelNames:
    """What the cells of a label column mean.

    Attributes:
        names: label by cell.
        separator: what stands between the labels of one cell, None where a cell holds one; the
            labels' names are joined by it again.
    """

    names: Mapping[str, str]
    separator: str | None = None

    def of(self, cell: str, where: str) -> str:
        """The name of a cell's label, or of its labels.

        Raises:
            InputError: the cell holds a label without a name.
        """
        parts = [cell] if self.separator is None else cell.split(self.separator)
        for part in parts:
            if part.strip() not in self.names:
                known = ", ".join(list(self.names)[:_SHOWN])
                raise InputError(
                    "expected a label of {known}{more}, found {found!r}; fetch the file again or "
                    "read it under another name",
                    place=where,
                    known=known,
                    more=", …" if len(self.names) > _SHOWN else "",
                    found=part.strip(),
                )
        return (self.separator or "").join(self.names[part.strip()] for part in parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How the rows of a file become records, where its own header does not say it.

    Attributes:
        texts: the columns that hold texts; of a pair, each text is a record of its own.
        label: the column of the label, None where records carry none.
        header: the names of all columns, for a file that has no header row.
        names: what the cells of the label column mean; None keeps them as they are.
    """

    texts: tuple[str, ...]
    label: str | None = None
    header: tuple[str, ...] | None = None
    names: LabelNames | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Layout":
        """The layout that a table of TOML or JSON holds.

        Args:
            content: `texts`; `label`, `header`, `names` (by cell, or a list of which cells are
                places) and `separator` where there are such.
        """
        names = content.get("names")
        if isinstance(names, list):
            names = {str(place): name for place, name in enumerate(names)}
        return cls(
            texts=tuple(content["texts"]),
            label=content.get("label"),
            header=tuple(content["header"]) if "header" in content else None,
            names=LabelNames(names=names, separator=content.get("separator")) if names else None,
        )


def layout_of(source: Source) -> Layout | None:
    """How a file is read, if it lies in a fetched folder whose `SOURCE.json` says so.

    Raises:
        InputError: the `SOURCE.json` is damaged, or of a version that did not say it.
    """
    if source.path is None:
        return None
    path = source.path.absolute()  # seen from inside the folder too
    # Files lie in the source's folder or one folder below it.
    for folder in list(path.parents)[:2]:
        content = read_source_file(folder)
        if content is None:
            continue
        try:
            file = content["files"].get(path.relative_to(folder).as_posix(), {"layout": None})
            return None if file["layout"] is None else Layout.of(file["layout"])
        except (AttributeError, KeyError, TypeError) as error:
            raise damaged_source_file(folder, error) from error
    return None


def read_source_file(folder: Path) -> dict[str, Any] | None:
    """The content of a folder's `SOURCE.json`, None where there is none.

    Raises:
        InputError: it is no JSON object.
    """
    try:
        content = json.loads((folder / SOURCE_FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise damaged_source_file(folder, error) from error
    if not isinstance(content, dict):
        raise damaged_source_file(folder, TypeError(type(content).__name__))
    return content


def damaged_source_file(folder: Path, error: Exception) -> InputError:
    """The error for a `SOURCE.json` that is not as this version writes it."""
    return InputError(
        "expected what `malmoi fetch` writes, found something else ({reason}); delete it and "
        "fetch again",
        place=folder / SOURCE_FILE,
        reason=error,
    )
