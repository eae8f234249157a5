"""Files as people have them: a table of texts and labels, written in some form, with some dirt.

A `DirtyFile` is plain values, so its `repr` makes it again. `write` renders it and returns what a
reader must find in it. Nothing here uses the product's readers.
"""

import csv
import datetime
import gzip
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq

FORMS = ("txt", "csv", "tsv", "jsonl", "json", "parquet", "xlsx")
TEXT_FORMS = ("txt", "csv", "tsv", "jsonl", "json")
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "cp949")
DIRT = (
    "blank at start",
    "blank in middle",
    "blank at end",
    "header again",
    "short rows",
    "long rows",
    "unnamed last column",
    "empty texts",
    "empty labels",
    "quotes",
    "line breaks in cells",
    "crlf",
    "cr",
    "nfd",
    "zero width",
    "long cell",
    "several sheets",
    "merged cells",
    "second table",
    "typed cells",
    "lists",
    "own column names",
    "odd labels",
)
# What a reader may refuse in one line instead of reading it.
MAY_BE_REFUSED = {"long rows", "second table", "merged cells"}
ODD_LABELS = {"긍정": "아주 좋음, 또 삼", "부정": "별로 😡", "중립": '"그냥"'}
_DAY = datetime.date(2024, 2, 29)


@dataclass(frozen=True, kw_only=True)
class DirtyFile:
    """A file, told so that it can be made again from its repr.

    Attributes:
        rows: text and label of each.
        form: one of `FORMS`.
        encoding: of the text forms, one of `ENCODINGS`; what it cannot hold is left out.
        zipped: whether a text form is packed by gzip.
        parts: files that the rows are spread over, in a folder; 1 is a file alone.
        text_column: its name.
        dirt: names of `DIRT`; what a form cannot have is passed over.
        seed: of where the dirt lies.
    """

    rows: tuple[tuple[str, str], ...]
    form: str = "csv"
    encoding: str = "utf-8"
    zipped: bool = False
    parts: int = 1
    text_column: str = "리뷰"
    dirt: tuple[str, ...] = ()
    seed: int = 0


@dataclass
class Written:
    """What was written, and what a reader must find.

    Attributes:
        path: the file or folder.
        columns: the header; an unnamed column is "".
        rows: the cells of every row with a text or without, in order; a row without a field lacks
            its key.
        texts: their texts as they stand there.
        labels: their labels.
        left_out: rows and lines that are none: blank ones, the header again.
        blanks: of these, how many blank ones stand in front of a row, by its place in `rows`.
        must_be_read: whether a refusal would be wrong.
    """

    path: Path
    text_column: str
    label_column: str | None
    columns: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    blanks: dict[int, int] = field(default_factory=dict)
    must_be_read: bool = True

    @property
    def in_place(self) -> list[dict[str, Any] | None]:
        """The rows, and None for each blank one in front of them."""
        rows: list[dict[str, Any] | None] = []
        for place, row in enumerate(self.rows):
            rows += [None] * self.blanks.get(place, 0) + [row]
        return rows

    def add(self, other: "Written") -> None:
        """What stands below, in another file or sheet."""
        before = len(self.rows)
        self.blanks |= {before + place: count for place, count in other.blanks.items()}
        self.rows += other.rows
        self.left_out += other.left_out
        self.must_be_read &= other.must_be_read

    @property
    def texts(self) -> list[str]:
        return [str(row.get(self.text_column) or "") for row in self.rows]

    @property
    def labels(self) -> list[str]:
        assert self.label_column is not None
        return [str(row.get(self.label_column) or "") for row in self.rows]


def write(file: DirtyFile, folder: Path) -> Written:
    """Render the file (or folder of files) into `folder`."""
    ending = f".{file.form}" + (".gz" if file.zipped and file.form in TEXT_FORMS else "")
    size = -(-len(file.rows) // file.parts)
    whole: Written | None = None
    for number in range(file.parts):
        rows = file.rows[number * size : (number + 1) * size]
        if not rows:
            break
        name = f"파일{number + 1}{ending}" if file.parts > 1 else f"글{ending}"
        place = folder / "묶음" if file.parts > 1 else folder
        place.mkdir(exist_ok=True)
        part = _write_one(
            file, rows, place / name, random.Random(file.seed + number), number * size
        )
        if whole is None:
            whole = part
        else:
            whole.add(part)
    assert whole is not None
    if file.parts > 1:
        whole.path = folder / "묶음"
    return whole


def _write_one(
    file: DirtyFile, rows: Sequence[tuple[str, str]], path: Path, chance: random.Random, first: int
) -> Written:
    dirt = set(file.dirt)
    if file.form == "txt":
        return _write_lines(file, [text for text, _ in rows], path, dirt, chance)
    # Names that Malmoi itself writes: the labels of somebody, and a score.
    label_column = "label" if "own column names" in dirt else "라벨"
    columns = ["번호", file.text_column, label_column, "상품"]
    if "own column names" in dirt:
        columns += ["score", "confidence"]
    if "typed cells" in dirt:
        columns += ["작성일", "값", "확인"]
    if "lists" in dirt and file.form in ("jsonl", "json", "parquet"):
        columns += ["목록", "묶음"]
    if "unnamed last column" in dirt and file.form in ("csv", "tsv", "xlsx"):
        columns.append("")
    made = Written(path, file.text_column, label_column, columns)
    for number, (text, label) in enumerate(rows, first + 1):
        cells = _cells(number, _dirty_text(text, dirt, chance, file), label, columns, dirt)
        if "empty texts" in dirt and chance.random() < 0.2:
            cells[file.text_column] = ""
        if "empty labels" in dirt and chance.random() < 0.2:
            cells[label_column] = ""
        if file.encoding == "cp949" and file.form in TEXT_FORMS:
            cells = {
                name: in_cp949(cell) if isinstance(cell, str) else cell
                for name, cell in cells.items()
            }
        made.rows.append(cells)
    if "long cell" in dirt:
        # A quoted text of a TSV file goes over ten lines at most.
        text = made.rows[0][file.text_column].replace("\n", " ")
        units = len(text.encode("utf-16-le")) // 2  # as Excel counts
        made.rows[0][file.text_column] = (text + " 정말 길게 썼어요. ") * (32_000 // (units + 12))
    _WRITERS[file.form](file, made, dirt, chance)
    made.must_be_read = not (dirt & MAY_BE_REFUSED) and any(text.strip() for text in made.texts)
    return made


def _cells(
    number: int, text: str, label: str, columns: Sequence[str], dirt: set[str]
) -> dict[str, Any]:
    known = {
        "번호": number,
        "상품": ("가방", "우산", "신발, 검정", 'TV 32"')[number % 4],
        "score": 0.25 * (number % 4),
        "confidence": 0.5,
        "작성일": _DAY + datetime.timedelta(days=number),
        "값": number / 4,
        "확인": number % 2 == 0,
        "목록": [number, number + 1],
        "묶음": {"가게": "서울", "층": number},
        "": f"메모 {number}",
    }
    label = ODD_LABELS[label] if "odd labels" in dirt else label
    return {name: known.get(name) for name in columns} | {
        columns[1]: text,
        columns[2]: label,
    }


def _dirty_text(text: str, dirt: set[str], chance: random.Random, file: DirtyFile) -> str:
    import unicodedata

    if "quotes" in dirt and chance.random() < 0.5:
        text = chance.choice((f'"{text}"', f'그가 "{text}"라고', f"{text}'"))
    if "line breaks in cells" in dirt and file.form != "txt" and chance.random() < 0.5:
        text = text.replace(" ", "\n", 1)
    if "zero width" in dirt and file.encoding != "cp949":
        text = text.replace(" ", "\u200b ", 1) + chance.choice(("\u200b", "\ufeff", "\u2060"))
    if "nfd" in dirt and file.encoding != "cp949":
        text = unicodedata.normalize("NFD", text)
    if file.form == "xlsx":
        text = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE.sub("", text)
    return text


def in_cp949(text: str) -> str:
    """What this encoding can hold of it."""
    return text.encode("cp949", "ignore").decode("cp949")


def _encoded(file: DirtyFile, text: str, dirt: set[str], path: Path) -> None:
    if "crlf" in dirt:
        text = text.replace("\n", "\r\n")
    elif "cr" in dirt:
        text = text.replace("\n", "\r")
    data = text.encode(file.encoding)
    if file.zipped:
        packed = io.BytesIO()
        with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream:
            stream.write(data)
        data = packed.getvalue()
    path.write_bytes(data)


def _write_lines(
    file: DirtyFile, texts: Sequence[str], path: Path, dirt: set[str], chance: random.Random
) -> Written:
    made = Written(path, "text", None, ["text"])
    for text in texts:
        dirty = _dirty_text(text, dirt, chance, file)
        if "long cell" in dirt:
            dirty = (dirty + " 길게 ") * 500
        made.rows.append({"text": in_cp949(dirty) if file.encoding == "cp949" else dirty})
    lines = [row["text"] for row in made.rows]
    made.left_out = _add_blanks(lines, dirt, chance)
    made.blanks = _blanks_before_rows(lines)
    _encoded(file, "\n".join(lines) + "\n", dirt, path)
    made.must_be_read = any(text.strip() for text in made.texts)
    return made


def _add_blanks(lines: list[str], dirt: set[str], chance: random.Random) -> int:
    """Put blank lines among others, some of them with white space; how many."""
    before = len(lines)
    blank = chance.choice(("", "", "  "))
    if "blank in middle" in dirt:
        for _ in range(chance.randint(1, 3)):
            lines.insert(chance.randint(1, max(1, len(lines) - 1)), blank)
    if "blank at start" in dirt:
        lines[:0] = [blank] * chance.randint(1, 2)
    if "blank at end" in dirt:
        lines += [blank] * chance.randint(1, 3)
    return len(lines) - before


def _blanks_before_rows(lines: Sequence[str], header: str | None = None) -> dict[int, int]:
    found: dict[int, int] = {}
    rows, blank, is_below = 0, 0, header is None
    for line in lines:
        if not line.strip():
            blank += is_below
        elif line == header:
            is_below = True
        else:
            if blank:
                found[rows] = blank
            rows, blank = rows + 1, 0
    return found


def _grid(file: DirtyFile, made: Written, dirt: set[str], chance: random.Random) -> list[list[Any]]:
    """Header and rows as lists of cells, with the dirt of a table but for blank rows."""
    columns = made.columns
    grid = [[row[name] for name in columns] for row in made.rows]
    if "short rows" in dirt and made.columns[-1] != "":
        for number, cells in enumerate(grid):
            if chance.random() < 0.3 and len(columns) > 3:
                cut = chance.randint(3, len(columns) - 1)
                made.rows[number] = dict(zip(columns[:cut], cells[:cut], strict=True))
                grid[number] = cells[:cut]
    if "long rows" in dirt:
        cells = grid[chance.randrange(len(grid))]
        cells += [None] * (len(columns) - len(cells)) + ["넘친 칸", 7]
    if "header again" in dirt:
        grid.insert(chance.randint(1, len(grid)), list(columns))
        made.left_out += 1
    if "second table" in dirt:
        below = [["지점", "점장이 남긴 말"], ["서울", "손님이 많았습니다"]]
        grid += below
        made.rows += [dict(zip(columns, cells, strict=False)) for cells in below]
    return [list(columns), *grid]


def _write_csv(file: DirtyFile, made: Written, dirt: set[str], chance: random.Random) -> None:
    stream = io.StringIO()
    tabs = file.form == "tsv"
    writer = csv.writer(stream, delimiter="\t" if tabs else ",", lineterminator="\n")
    lines = []
    for cells in _grid(file, made, dirt, chance):
        writer.writerow(cells)
        lines.append(stream.getvalue().removesuffix("\n"))
        stream.seek(0)
        stream.truncate()
    header = lines[0]
    made.left_out += _add_blanks(lines, dirt, chance)
    made.blanks = _blanks_before_rows(lines, header)
    for row in made.rows:
        for name, cell in row.items():
            row[name] = "" if cell is None else str(cell)
    _encoded(file, "\n".join(lines) + "\n", dirt, made.path)
    # Lines of a TSV file end alike, also inside quotes.
    if not tabs and ("crlf" in dirt or "cr" in dirt):
        end = "\r\n" if "crlf" in dirt else "\r"
        for row in made.rows:
            row[made.text_column] = row[made.text_column].replace("\n", end)


def _plain(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, datetime.date) else cell


def _write_json(file: DirtyFile, made: Written, dirt: set[str], chance: random.Random) -> None:
    for number, row in enumerate(made.rows):
        made.rows[number] = {name: _plain(cell) for name, cell in row.items()}
        if "short rows" in dirt and chance.random() < 0.3:
            made.rows[number].pop("상품")
    if file.form == "json":
        indent = chance.choice((None, 1))
        text = json.dumps(made.rows, ensure_ascii=False, indent=indent) + "\n"
    else:
        lines = [json.dumps(row, ensure_ascii=False) for row in made.rows]
        made.left_out += _add_blanks(lines, dirt, chance)
        text = "\n".join(lines) + "\n"
    _encoded(file, text, dirt, made.path)


def _write_parquet(file: DirtyFile, made: Written, dirt: set[str], chance: random.Random) -> None:
    for row in made.rows:
        for name, cell in row.items():
            if cell == "" and chance.random() < 0.5:
                row[name] = None
    columns = {name: [row[name] for row in made.rows] for name in made.columns}
    pq.write_table(pa.table(columns), made.path, row_group_size=3)


def _write_xlsx(file: DirtyFile, made: Written, dirt: set[str], chance: random.Random) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "1월"
    if "several sheets" in dirt and len(made.rows) > 1:
        half = len(made.rows) // 2
        later = Written(made.path, made.text_column, made.label_column, made.columns)
        later.rows = made.rows[half:]
        made.rows = made.rows[:half]
        _fill(sheet, file, made, dirt, chance)
        _fill(book.create_sheet("2월"), file, later, dirt, chance)
        book.create_sheet("안내").append(["이 파일은", "가게에서 만들었습니다"])
        made.add(later)
    else:
        _fill(sheet, file, made, dirt, chance)
    moving = {"blank at start", "blank in middle", "header again", "several sheets"}
    if "merged cells" in dirt and len(made.rows) > 2 and not dirt & moving:
        # The product of two rows, as people merge what is the same: it holds for both.
        place = made.columns.index("상품")
        sheet.merge_cells(start_row=2, end_row=3, start_column=place + 1, end_column=place + 1)
        if "상품" in made.rows[0]:
            made.rows[1]["상품"] = made.rows[0]["상품"]
    for row in made.rows:
        for name, cell in row.items():
            if cell == "":
                row[name] = None
    book.save(made.path)


def _fill(
    sheet: Any, file: DirtyFile, made: Written, dirt: set[str], chance: random.Random
) -> None:
    grid = _grid(file, made, dirt, chance)
    number = 2 if "blank at start" in dirt else 0
    blank_before = chance.randrange(1, len(grid)) if "blank in middle" in dirt else 0
    for place, cells in enumerate(grid):
        if place and place == blank_before:
            number += 1
            made.left_out += 1
            row = sum(above != grid[0] for above in grid[1:place])
            if row < len(made.rows):
                made.blanks[row] = 1
        number += 1
        for column, cell in enumerate(cells, 1):
            if cell is not None and cell != "":
                sheet.cell(number, column, cell)
                if isinstance(cell, str):
                    sheet.cell(number, column).data_type = "s"


_WRITERS: dict[str, Callable[[DirtyFile, Written, set[str], random.Random], None]] = {
    "csv": _write_csv,
    "tsv": _write_csv,
    "jsonl": _write_json,
    "json": _write_json,
    "parquet": _write_parquet,
    "xlsx": _write_xlsx,
}
