"""Which column of a table is the text, the label and the id, and what its cells say."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from malmoi.errors import InputError
from malmoi.messages import Flag, Phrase
from malmoi.text.characters import visible_in_nfc
from malmoi.text.reading.layouts import LabelNames

# As they are met in published tables; compared without case, blanks, hyphens and underscores.
TEXT_COLUMNS = (
    *("text", "document", "review", "comment", "comments", "content", "contents"),
    *("sentence", "utterance", "message", "review_text", "review_content", "comment_text"),
    *("리뷰", "댓글", "내용", "본문", "문장", "발화", "리뷰내용", "후기", "메시지"),
)
LABEL_COLUMNS = (
    *("label", "labels", "lable", "sentiment", "category"),
    *("라벨", "레이블", "감정", "분류"),
)
ID_COLUMN = "id"
# First and second texts, tried in this order: KorSTS and KLUE's STS, Question pair, KLUE's NLI, and
# our own.
PAIR_COLUMNS = (
    *(("sentence1", "sentence2"), ("question1", "question2")),
    *(("premise", "hypothesis"), ("text", "pair")),
)

# A file without a header row shows its first text as a column: keep the message readable.
SHOWN_COLUMNS = 12
SHOWN_CHARACTERS = 300
# Rows that are looked at to choose the text column.
SAMPLE_ROWS = 200
# Rows above a header that hold a title.
TITLE_ROWS = 10
# Cells of a text column that must hold a letter (assumption: some texts are pictures only).
_LETTERS = 0.5
# Cells of a text column that must differ where another column's do (assumption).
_DIFFERENT = 0.5
# Characters of words among numbers that are no remark such as N/A or 무응답 (assumption).
_FEWEST_WORDS = 6
# Why a column with a name of labels is not the label beside another one.
_LESS_USUAL = "comes later among the usual names"

# Halves of surrogate pairs: JSON can escape a single one, as programs write that cut texts by
# UTF-16 units, and Excel both of a pair.
_HALVES = re.compile("[\ud800-\udfff]")
# Numbers, dates and times with what people write beside them: 1,200개, [3], 999+, 1.2만, 오후 3:20.
_NUMBER = re.compile(r"(?=\D*\d)(?:[-+\d.,:/%\s()\[\]]|오전|오후|[개건회명점원만천년월일시분초])+")


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnRequest:
    """What the caller asked for.

    Attributes:
        text: name of the text column, or its number from 1, or None to look for a known one.
        label: the same of the label column.
        need_label: whether a table without a label column is an error.
        header: the column names of a table that has no header row.
        names: what the cells of the label column mean; None keeps them as they are.
        any_sheet: where no sheet of a workbook has the columns, the first will do.
        pair: name or number of the column of second texts.
        any_pair: look for first and second texts by the pairs of names that are known.
        usual_labels: names of label columns to look for.
        others: names of columns whose cells are wanted, too, and what each is: label or group.
        optional: names of columns whose cells are wanted where a table has them.
        all_cells: give the cells of all columns.
        keep_blank: give rows that hold nothing, too, where others follow them.
    """

    text: str | None = None
    label: str | None = None
    need_label: bool = False
    header: tuple[str, ...] | None = None
    names: LabelNames | None = None
    any_sheet: bool = False
    pair: str | None = None
    any_pair: bool = False
    usual_labels: tuple[str, ...] = LABEL_COLUMNS
    others: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    all_cells: bool = False
    keep_blank: bool = False

    @property
    def wants_label(self) -> bool:
        """Whether a label column must be there."""
        return self.need_label or self.label is not None

    def locate(
        self, columns: Sequence[str], where: str, sample: Sequence[Sequence[object]] = ()
    ) -> "ColumnPlaces":
        """Find the columns of a table.

        Args:
            columns: the header.
            sample: its first rows, whole: a column that holds numbers is no text, whatever it is
                called, and of several the fullest and longest is taken.

        Raises:
            InputError: a column that must be there is not, or cannot be told from others.
        """
        reads_pairs = self.pair is not None or self.any_pair
        label, labels_passed_over = _label_place(columns, self, where)
        identifier = next(iter(_places(columns, (ID_COLUMN,))), None)
        passed_over: tuple[tuple[str, str], ...] = ()
        pair = None
        if reads_pairs:
            text, pair = _pair_places(columns, self, where)
        elif self.text is not None:
            text = _named_place(columns, self.text, "text", where)
        else:
            taken = {label, identifier} if self.label is not None else {identifier}
            text, passed_over = _text_place(columns, sample, taken, where)
            if label == text:
                label, labels_passed_over = None, ()
        return ColumnPlaces(
            text=text,
            label=label,
            id=identifier,
            pair=pair,
            others=tuple(_named_place(columns, *other, where) for other in self.others.items()),
            optional=tuple(
                (name, places[0])
                for name in self.optional
                if (places := _places(columns, (name,))) and places[0] not in (text, label)
            ),
            passed_over=passed_over,
            labels_passed_over=tuple(
                (columns[place], _LESS_USUAL) for place in labels_passed_over if place != text
            ),
        )

    def fits(self, columns: Sequence[str], sample: Sequence[Sequence[object]]) -> bool:
        """Whether `locate` finds the columns."""
        try:
            self.locate(columns, "", sample)
        except InputError:
            return False
        return True


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnPlaces:
    """Positions in the header, from 0; None where a table has no such column.

    Attributes:
        others: of `ColumnRequest.others`, in their order.
        optional: of `ColumnRequest.optional`, those that are there, by name.
        passed_over: columns that could have been the text by their name, and why they are not.
        labels_passed_over: the same of the label.
    """

    text: int
    label: int | None
    id: int | None
    pair: int | None = None
    others: tuple[int, ...] = ()
    optional: tuple[tuple[str, int], ...] = ()
    passed_over: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    labels_passed_over: tuple[tuple[str, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class _Cells:
    """What the first cells of a column are like."""

    lettered: float
    """Share of the filled ones that hold a letter and are no address."""
    numeric: float
    """Share of the filled ones that are numbers, dates or times."""
    length: float
    """Characters a row, empty ones included."""
    nested: float
    """Share of the rows that hold an object or a list."""
    different: float
    """Share of the filled ones that are the first of their kind."""

    @classmethod
    def of(cls, cells: Sequence[object]) -> "_Cells":
        texts = [text for cell in cells if (text := _shown(cell).strip())]
        filled = max(1, len(texts))
        return cls(
            lettered=sum(map(_is_worded, texts)) / filled,
            numeric=sum(_NUMBER.fullmatch(text) is not None for text in texts) / filled,
            length=sum(map(len, texts)) / max(1, len(cells)),
            nested=sum(isinstance(cell, list | dict) for cell in cells) / max(1, len(cells)),
            different=len(set(texts)) / filled,
        )


def plain_name(name: str) -> str:
    """A column's name as it is compared: "Review_Text" and "review text" are one."""
    return re.sub(r"[\s_\-]+", "", visible_in_nfc(name)).casefold()


class HeaderAgain:
    """Whether a row is the header once more, as programs that append to a file write it.

    Case, blanks and empty cells at the end do not count where there are several names.
    """

    def __init__(self, header: Sequence[object]) -> None:
        self._header = list(header)
        self._names = _plain_names(header)
        self._place = next((n for n, name in enumerate(self._names) if name), 0)
        name = "".join(self._names)[:1]
        # Most rows are told by one character; a Mac writes Hangul as single letters.
        self._firsts = {name, name.upper(), unicodedata.normalize("NFD", name)[:1], *" \t_-\ufeff"}

    def __call__(self, row: Sequence[object]) -> bool:
        if len(self._names) < 2:
            return list(row) == self._header
        if len(row) <= self._place or _shown(row[self._place])[:1] not in self._firsts:
            return False
        return _plain_names(row) == self._names


class MovedRows:
    """Which rows have slipped by a column: a number for a text, and words among numbers.

    Args:
        sample: the first rows of a table, whole; some of them may have slipped, too.
        text: place of the text column.
    """

    def __init__(self, sample: Sequence[Sequence[object]], text: int) -> None:
        width = max(map(len, sample), default=0)
        columns = [[row[n] if n < len(row) else None for row in sample] for n in range(width)]
        numeric = [n for n, cells in enumerate(columns) if _Cells.of(cells).numeric > 1 - _LETTERS]
        self._text, self._numeric = text, () if text in numeric else tuple(numeric)

    def fault(self, row: Sequence[object]) -> Phrase | None:
        """What is wrong with a row, if it has slipped."""
        cell = _shown(row[self._text]).strip() if self._text < len(row) else ""
        if not self._numeric or not cell or not cell[-1].isdigit() or not _NUMBER.fullmatch(cell):
            return None
        for place in self._numeric:
            other = _shown(row[place]).strip() if place < len(row) else ""
            if len(other) >= _FEWEST_WORDS and _is_worded(other) and not _NUMBER.fullmatch(other):
                return Phrase(
                    "expected a text in column {text} and a number in column {number}, found "
                    "{cell!r} and {other!r}; move the row's cells back to their columns",
                    text=self._text + 1,
                    number=place + 1,
                    cell=cell,
                    other=other[:SHOWN_CHARACTERS],
                )
        return None


def has_text_column(columns: Sequence[str], requested: str | None) -> bool:
    """Whether this line is a header with a text column that we know or were told of."""
    names = TEXT_COLUMNS if requested is None else (*TEXT_COLUMNS, requested)
    return bool(_places(columns, names))


def header_below(sample: Sequence[Sequence[object]], requested: str | None) -> int | None:
    """Which of the first rows, from 1, looks like the header that the first line is not."""
    for number, row in enumerate(sample[:TITLE_ROWS], 1):
        names = [_shown(cell).strip() for cell in row]
        if len([name for name in names if name]) > 1 and has_text_column(names, requested):
            return number
    return None


def whole_characters(text: str) -> str:
    """The text with halves of characters joined, or left out: UTF-8 cannot hold one."""
    if _HALVES.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")


def cell_text(cell: object, where: str) -> str:
    """A cell as text: "" for nothing, "1" for 1.0, otherwise as it prints, without half emoji.

    Raises:
        InputError: the cell holds a list, a mapping or bytes.
    """
    if isinstance(cell, str):
        return whole_characters(cell)
    if cell is None:
        return ""
    if isinstance(cell, float):
        if cell != cell:  # NaN is how pandas writes an empty cell
            return ""
        return str(int(cell)) if cell.is_integer() else str(cell)
    if isinstance(cell, list | tuple | dict | set | bytes):
        raise InputError(
            "expected text or a number in the cell, found {kind}; write it as text",
            place=where,
            kind=type(cell).__name__,
        )
    return str(cell)


def label_text(cell: object, where: str) -> str | None:
    """A cell of labels as text: one label as it is, several as a JSON list, None for none.

    Raises:
        InputError: the cell holds bytes.
    """
    if isinstance(cell, list | tuple) and len(cell) == 1 and not isinstance(cell[0], list | dict):
        cell = cell[0]
    if isinstance(cell, list | tuple | dict):
        return json.dumps(cell, ensure_ascii=False, default=str) if cell else None
    return cell_text(cell, where).strip() or None


def shown_columns(columns: Sequence[str]) -> str:
    """The first of these names, cut where they are very long, for a message."""
    # A question of a form may go over several lines; blanks do not count when a column is named.
    names = [" ".join(column.split()) for column in columns[:SHOWN_COLUMNS]]
    shown = [
        name if len(name) <= SHOWN_CHARACTERS else f"{name[:SHOWN_CHARACTERS]}…" for name in names
    ]
    if len(columns) > SHOWN_COLUMNS:
        shown.append(f"and {len(columns) - SHOWN_COLUMNS} more")
    return ", ".join(shown)


def _plain_names(row: Sequence[object]) -> list[str]:
    names = [plain_name(_shown(cell)) for cell in row]
    while names and not names[-1]:
        names.pop()
    return names


def _shown(cell: object) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None or cell != cell or isinstance(cell, list | tuple | dict | set | bytes):
        return ""
    return str(cell)


def _is_worded(text: str) -> bool:
    return any(map(str.isalpha, text)) and not text.startswith(("http://", "https://", "www."))


def _places(columns: Sequence[str], names: Sequence[str]) -> list[int]:
    """Columns with one of these names, in the order of the names; an exact one comes first."""
    plain = [plain_name(column) for column in columns]
    found: dict[int, None] = {}
    for name in names:
        exact = [place for place, column in enumerate(columns) if column == name]
        wanted = plain_name(name)
        alike = [place for place, column in enumerate(plain) if column == wanted]
        found.update(dict.fromkeys([*exact, *alike]))
    return list(found)


def _pair_places(columns: Sequence[str], request: ColumnRequest, where: str) -> tuple[int, int]:
    """The columns of first and second texts: those that are named, else of known names.

    Raises:
        InputError: one of them is not there.
    """
    pairs = [(request.text or text, request.pair or pair) for text, pair in PAIR_COLUMNS]
    pairs = [(text, pair) for text, pair in pairs if text != pair]
    with_text = [names for names in pairs if _is_there(columns, names[0])]
    whole = [names for names in with_text if _is_there(columns, names[1])]
    text, pair = next(iter([*whole, *with_text, pairs[-1]]))
    return _named_place(columns, text, "text", where), _named_place(columns, pair, "pair", where)


def _is_there(columns: Sequence[str], name: str) -> bool:
    try:
        _named_place(columns, name, "text", "")
    except InputError:
        return False
    return True


def _named_place(columns: Sequence[str], name: str, kind: str, where: str) -> int:
    """The column with this name, else the one with this number.

    Raises:
        InputError: there is none, or there are several.
    """
    exact = [place for place, column in enumerate(columns) if column == name]
    found = exact or _places(columns, (name,))
    if len(found) > 1:
        raise _twins(name, found, kind, where)
    if found:
        return found[0]
    if name.isascii() and name.isdigit() and 1 <= int(name) <= len(columns):
        return int(name) - 1
    raise _missing(where, columns, kind, Phrase("a column named {name!r}", name=name))


def _twins(name: str, places: Sequence[int], kind: str, where: str) -> InputError:
    numbers = ", ".join(str(place + 1) for place in places)
    return InputError(
        "expected one column {name!r}, found {count}, the columns {numbers}; give the number of "
        "the right one as {flag}",
        place=where,
        name=name,
        count=len(places),
        numbers=numbers,
        flag=_flag(kind),
    )


def _alike(columns: Sequence[str], places: Sequence[int], place: int) -> list[int]:
    """Those of these places whose columns nobody could tell from that of one of them."""
    name = visible_in_nfc(columns[place]).strip()
    return [other for other in places if visible_in_nfc(columns[other]).strip() == name]


def _label_place(
    columns: Sequence[str], request: ColumnRequest, where: str
) -> tuple[int | None, tuple[int, ...]]:
    """The label column, and the others of such a name."""
    if request.label is not None:
        return _named_place(columns, request.label, "label", where), ()
    found = _places(columns, request.usual_labels)
    if not found and request.need_label:
        raise _missing(
            where, columns, "label", Phrase("one of {names:, }", names=request.usual_labels)
        )
    if request.need_label and len(twins := _alike(columns, found, found[0])) > 1:
        raise _twins(columns[found[0]], twins, "label", where)
    return (found[0], tuple(found[1:])) if found else (None, ())


def _text_place(
    columns: Sequence[str],
    sample: Sequence[Sequence[object]],
    taken: set[int | None],
    where: str,
) -> tuple[int, tuple[tuple[str, str], ...]]:
    """The text column, and the columns of such a name that were passed over."""
    candidates = [place for place in _places(columns, TEXT_COLUMNS) if place not in taken]
    if not candidates:
        raise _missing(where, columns, "text", Phrase("one of {names:, }", names=TEXT_COLUMNS))
    cells = {
        place: _Cells.of([row[place] if place < len(row) else None for row in sample])
        for place in candidates
    }
    passed_over = []
    worded = []
    for place in candidates:
        if sample and cells[place].numeric > 1 - _LETTERS:
            passed_over.append((columns[place], "holds numbers"))
        elif sample and cells[place].nested > 1 - _LETTERS:
            passed_over.append((columns[place], "holds objects or lists"))
        elif sample and len(candidates) > 1 and cells[place].lettered < _LETTERS:
            passed_over.append((columns[place], "holds no words"))
        else:
            worded.append(place)
    if not worded:
        names = ", ".join(f"{name} ({why})" for name, why in passed_over)
        raise InputError(
            "no text column: expected words in a column of texts, found {names}; name the right "
            "one of {columns} with --text-column",
            place=where,
            names=names,
            columns=shown_columns(columns),
        )
    # What annotators write beside texts is the same again and again.
    if own := [place for place in worded if cells[place].different > _DIFFERENT]:
        passed_over += [(columns[place], "repeats itself") for place in worded if place not in own]
        worded = own
    best = max(worded, key=lambda place: (cells[place].length, -worded.index(place)))
    if len(twins := _alike(columns, worded, best)) > 1:
        raise _twins(columns[best], twins, "text", where)
    passed_over += [(columns[place], "is shorter") for place in worded if place != best]
    return best, tuple(passed_over)


# What a person calls the columns of a request; those of other names are called by these.
_KIND_NAMES = {"text": Phrase("text"), "pair": Phrase("second text"), "label": Phrase("label")}


def _missing(where: str, columns: Sequence[str], kind: str, expected: str) -> InputError:
    twins = [name for name, count in Counter(columns).items() if count > 1]
    flag = _flag(kind)
    number = Phrase("its number")
    if not twins:
        no_header = Flag("--no-header")
        number = Phrase("{no_header} and its number as {flag}", no_header=no_header, flag=flag)
    return InputError(
        "no {kind} column: expected {expected}, found the columns {columns}; name the right one "
        "with {flag} (the first row must be the header; where it is not, give {number})",
        place=where,
        kind=_KIND_NAMES.get(kind, kind),
        expected=expected,
        columns=shown_columns(columns),
        flag=flag,
        number=number,
    )


def _flag(kind: str) -> str:
    """What names a column of a kind."""
    return "--set data.group_column" if kind == "group" else f"--{kind}-column"


def distinct_names(columns: Sequence[str]) -> list[str]:
    """The columns as cells name them: one without a name by its place, a name that comes again with
    a number behind."""
    names: dict[str, None] = {}  # in their order; a file may have a hundred thousand
    times: Counter[str] = Counter()
    for number, column in enumerate(columns, 1):
        name = free = column.strip("\ufeff ") or f"column {number}"
        while free in names:
            times[name] += 1
            free = f"{name} ({times[name] + 1})"
        names[free] = None
    return list(names)
