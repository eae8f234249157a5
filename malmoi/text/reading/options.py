"""How a user wants files to be read, where the files alone do not tell: flags of every command."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class ReadOptions:
    """Flags about the input files."""

    text_column: str | None = None
    """Column that holds the text, by name or number; found by its name and cells when not given."""
    sheet: str | None = None
    """Sheet of a workbook to read; by default all with one header, that of the longest table."""
    delimiter: str | None = None
    """What parts the columns of text files: tab, comma, semicolon, bar or any character; none reads
    whole lines. Found by itself when not given."""
    no_header: bool = False
    """The first row is a row like the others; name columns by their numbers."""
    skip_bad_rows: bool = False
    """Leave out rows that cannot be read, and say how many; by default they are an error."""


@dataclass(frozen=True, kw_only=True)
class ReadingKeys:
    """[reading] of a recipe: see `ReadOptions`."""

    sheet: str | None = None
    """Sheet of a workbook; none: all with one header, that of the longest table."""
    delimiter: str = "auto"
    """What parts the columns of text files: tab, comma, semicolon, bar or any character; none reads
    whole lines. auto: found by itself."""
    no_header: bool = False
    """The first row is a row like the others; columns are named by their numbers."""

    def options(self, *, text_column: str | None, skip_bad_rows: bool) -> ReadOptions:
        """With what stays a flag."""
        return ReadOptions(
            text_column=text_column,
            sheet=self.sheet,
            # "none" is a delimiter: whole lines.
            delimiter=None if self.delimiter == "auto" else self.delimiter,
            no_header=self.no_header,
            skip_bad_rows=skip_bad_rows,
        )
