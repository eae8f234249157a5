"""What is said about a public source: files, licence, citation and the meaning of its labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """Another file that is known and may stand for the original when it comes from a mirror.

    Attributes:
        sha256: of that file.
        size: of that file, in bytes.
        note: how it differs; printed whenever it is taken.
    """

    sha256: str
    size: int
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteFile:
    """One file of a source.

    Attributes:
        name: its path below the source's folder, with slashes.
        url: where the original is.
        sha256: of the original, 64 hexadecimal digits; None where it is not known, and then the
            hash of the first download is written to `SOURCE.json` and holds from then on.
        size: of the original in bytes, None where it is not known.
        variants: files that a mirror may have in its place.
        layout: how it is read, as `malmoi.text.reading.layouts` has it in a `SOURCE.json`; None: as
            any file of its kind.
        made_by: which of `made_files.MADE_BY` makes it, where no server has it as it is: `url` is
            then the `.tar.gz` of a repository at a commit, or the one file that it is made of;
            `sha256` and `size` are those of the file that is made, because servers may pack the
            same files differently.
        made_of: the ends of the paths of what it is made of, as `PurePath.match` takes them, such
            as `raw/*.json`.
    """

    name: str
    url: str
    sha256: str | None = None
    size: int | None = None
    variants: tuple[Variant, ...] = ()
    layout: Mapping[str, Any] | None = None
    made_by: str = ""
    made_of: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicSource:
    """One public corpus.

    Attributes:
        name: what `malmoi fetch` calls it.
        about: one line: what texts these are.
        homepage: where it is described.
        licence: the licence, short.
        licence_note: who says so and what is uncertain, where there is more to say.
        citation: how its authors want it cited.
        labels: what the labels of its records mean, and how several labels are joined.
        texts: how many records its reader yields; None where nobody has counted.
        files: what is fetched.
    """

    name: str
    about: str
    homepage: str
    licence: str
    citation: str
    labels: str
    files: tuple[RemoteFile, ...] = field(repr=False)
    texts: int | None = None
    licence_note: str = ""

    @property
    def size(self) -> int | None:
        """Bytes in all, None where the size of a file is not known."""
        sizes = [file.size for file in self.files]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None
