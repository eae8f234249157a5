"""Which label database is meant, and which project in it, as people write it on a command line.

    runs/labels.db    sqlite:///runs/labels.db    postgresql+psycopg://user@host/name
    MALMOI_DATABASE#memos    (the URL in this variable, whose password is then in no command line)
    each with #memos (the name of a project) behind it

Nothing is imported here that takes long; `malmoi.labels.training_texts` reads it.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from malmoi.errors import InputError

DATABASE_VARIABLE = "MALMOI_DATABASE"
_MAGIC = b"SQLite format 3\x00"
# One letter alone is a drive.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_PASSWORDS = (
    re.compile(r"(?<=://)([^:@/?]*):.*(?=@)"),
    re.compile(r"([?&][^=&#]*pass[^=&#]*)=[^&#]*", re.IGNORECASE),
)


@dataclass(frozen=True, kw_only=True)
class LabelDatabase:
    """A file or a server with labels, and which project in it.

    As text it is what was given, without a password.

    Attributes:
        path: the SQLite file, or None.
        url: SQLAlchemy's, or None.
        part: the name of a project; None: the only one there is.
    """

    path: Path | None = None
    url: str | None = field(default=None, repr=False)
    part: str | None = None

    def __str__(self) -> str:
        place = str(self.path) if self.url is None else without_password(self.url)
        return place if self.part is None else f"{place}#{self.part}"

    @property
    def name(self) -> str:
        """Short, for names of runs and records: that of the file, or of the database."""
        if self.path is not None:
            return self.path.name
        place = without_password(self.url or "").partition("://")[2].partition("?")[0]
        return PurePosixPath(place).name or "labels"


def label_database(given: str | Path) -> LabelDatabase | None:
    """The label database that is meant; None where it is a file or folder of another kind.

    Everything with `://` is one: reading it says what is wrong with it. So is the name of the
    variable with something behind it.

    Raises:
        InputError: the variable is named, and is not set.
    """
    text = str(given)
    place, part = _split(text)
    if place == DATABASE_VARIABLE and part is not None:
        if not (url := os.environ.get(DATABASE_VARIABLE)):
            raise InputError(
                "expected the URL of a label database in {variable}, found nothing; set it, or "
                "write the URL in its place",
                place=text,
                variable=DATABASE_VARIABLE,
            )
        return LabelDatabase(url=url, part=part)
    if _URL.match(text):
        return LabelDatabase(url=place, part=part)
    if _is_sqlite(Path(text)):
        return LabelDatabase(path=Path(text))
    if part is not None and _is_sqlite(Path(place)):
        return LabelDatabase(path=Path(place), part=part)
    return None


def as_part(name: str) -> str:
    """A project's name as it is written behind `#`: what ends it there is escaped."""
    return "".join(f"%{ord(one):02X}" if one in "%#@/?" else one for one in name)


def without_password(url: str) -> str:
    """The URL with `***` for a password before the host or among its options."""
    before, options = _PASSWORDS
    return options.sub(r"\1=***", before.sub(r"\1:***", url))


def _split(text: str) -> tuple[str, str | None]:
    """What is before `#`, and what is behind; a `#` in a password or a folder's name is none."""
    place, sign, part = text.rpartition("#")
    if not sign or not part or set(part) & set("@/?"):
        return text, None
    return place, unquote(part)


def _is_sqlite(path: Path) -> bool:
    try:
        if not path.is_file():  # to open a pipe is to wait for it
            return False
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except (OSError, ValueError):
        return False
