"""Rows and files that cannot be read: all are seen before they are told, or they are left out."""

from dataclasses import dataclass, field

from malmoi.errors import InputError
from malmoi.messages import Flag, Phrase

_SHOWN = 5


class EmptySourceError(InputError):
    """A file without a text: in a folder of others it is left out."""


@dataclass(kw_only=True)
class BadRows:
    """What was wrong so far.

    Attributes:
        skip: leave bad rows out and go on, as `--skip-bad-rows` says.
        keep: how many of them are kept to be shown.
        first: the first few of them.
        count: how many there were.
        files: files that cannot be read.
    """

    skip: bool = False
    keep: int = _SHOWN
    first: list[InputError] = field(default_factory=list)
    count: int = 0
    files: list[InputError] = field(default_factory=list)

    def add(self, error: InputError) -> None:
        """Take note of a row that cannot be read."""
        self.count += 1
        if len(self.first) < self.keep:
            self.first.append(error)

    def add_file(self, error: InputError) -> None:
        """Take note of a file that cannot be read; such are never left out."""
        self.files.append(error)

    @property
    def stops(self) -> bool:
        """Whether nothing more is to be given out: it is only looked for what else is wrong."""
        return bool(self.files) or (self.count > 0 and not self.skip)

    def raise_all(self) -> None:
        """Raise one InputError that names the first of all that was wrong, if that is an error."""
        if not self.stops:
            return
        rows = self.count if not self.skip else 0
        told = [*self.files[:_SHOWN], *(self.first[:_SHOWN] if rows else [])]
        total = len(self.files) + rows
        skip = Flag("--skip-bad-rows")
        advice = Phrase(" ({skip} leaves such rows out)", skip=skip) if rows else ""
        if total == 1:
            raise InputError(
                "{told}{advice}", place=told[0].place, told=told[0].reason, advice=advice
            ) from told[0]
        kinds = Phrase("rows") if not self.files else Phrase("files")
        if self.files and rows:
            kinds = Phrase("files and rows")
        rest = total - len(told)
        more = Phrase("; and {rest:,} more", rest=rest) if rest else ""
        raise InputError(
            "{total:,} {kinds} cannot be read: {told:; }{more}{advice}",
            total=total,
            kinds=kinds,
            told=told,
            more=more,
            advice=advice,
        )
