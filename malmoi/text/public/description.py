"""What is said about a public source: files, licence, citation and the meaning of its labels."""

from dataclasses import dataclass, field

from malmoi.text.reading.columns import LabelNames


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
        layout: how it is read; None: as any file of its kind.
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
    layout: Layout | None = None
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

    @property
    def layouts(self) -> dict[str, Layout | None]:
        """The layout of each file by its name."""
        return {file.name: file.layout for file in self.files}
