"""Rows read: one table in every form that the reader knows, the sample corpora, handed files."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd

from tests.golden import product
from tests.golden.entries import Golden

CASES = Path("cases")
# The labelled files that k-fold reads, with the task and the columns that a person would name.
LABELLED: dict[str, tuple[Any, dict[str, Any]]] = {
    "doccano.jsonl": ("multi", {}),
    "doccano_multi.csv": ("multi", {"text_column": "data", "label_separator": "#"}),
    "json_list.csv": ("multi", {}),
    "klue_nli_own.jsonl": ("pair", {}),
    "labelstudio_min.json": ("multi", {"label_column": "topic"}),
    "multi_none.csv": ("multi", {}),
    "onehot.tsv": ("multi", {}),
    "pairs_own.tsv": ("pair", {"label_column": "gold_label"}),
    "k04_mixed_separators.csv": ("multi", {}),
    "k05_names_with_commas.csv": ("multi", {"label_separator": ";"}),
    "k22_soft_labels.csv": ("multi", {}),
    "k22_votes.csv": ("multi", {}),
    "k23_stars.csv": ("single", {"label_column": "star"}),
}
# A table with what cells are like: quotes, line breaks, emoji, numbers, nothing at all.
TABLE = [
    {"id": "1", "text": "배송이 빨라요, 또 살게요", "label": "긍정", "stars": "5"},
    {"id": "2", "text": '포장이 "엉망"이에요\n다시는 안 사요', "label": "부정", "stars": "1"},
    {"id": "3", "text": "그냥 그래요ㅋㅋㅋㅋ", "label": "", "stars": ""},
    {"id": "4", "text": "", "label": "긍정", "stars": "3"},
    {"id": "5", "text": "연락처는 010-1234-5678 입니다", "label": "부정", "stars": "2.5"},
    {"id": "6", "text": "  앞뒤로 빈칸이 있는 글  ", "label": " 긍정 ", "stars": "4"},
]
CHAT = """2024년 3월 5일 화요일
2024년 3월 5일 오후 3:01, 지은 : 오늘 회의는 몇 시에 하나요
2024년 3월 5일 오후 3:02, 민수 : 열 시에 합니다
그때 뵐게요
2024년 3월 5일 오후 3:03, 지은 : 네 알겠습니다
"""


def run(golden: Golden) -> None:
    """Every form of file, the samples, and the handed files where there are any."""
    forms = golden.work / "forms"
    write_forms(forms)
    for path in sorted(forms.iterdir()):
        _add(golden, f"rows/forms/{path.name}", path.relative_to(golden.work))
    for name in ("comments", "memos", "reviews"):
        _add(golden, f"rows/corpora/{name}", Path("corpora") / name)
    for name in ("memos", "reviews"):
        file = Path("corpora") / name / f"{name}.csv"
        _enter(golden, f"labelled/corpora/{name}", product.labelled_of(file, "single"))
    if not CASES.is_dir():
        golden.skipped |= dict.fromkeys(
            ("rows/cases/", "labelled/cases/"), "no ../shared/cases beside this checkout"
        )
        return
    for folder in ("reading", "labels", "round3/files", "round3/labels"):
        for path in sorted((CASES / folder).iterdir()):
            name = f"cases/{folder}/{path.name}"
            _add(golden, f"rows/{name}", path)
            if folder.endswith("labels"):
                task, columns = LABELLED.get(path.name, ("single", {}))
                found = product.labelled_of(path, task, **columns)
                _enter(golden, f"labelled/{name}", found)


def _add(golden: Golden, name: str, path: Path) -> None:
    _enter(golden, f"{name}/texts", product.texts_of(path))
    _enter(golden, f"{name}/cells", product.cells_of(path))


def _enter(golden: Golden, name: str, read: product.Read) -> None:
    rows, notes, error = read
    beside: dict[str, Any] = {"error": error} if error else {}
    golden.add(name, {"rows": rows, "notes": notes, "error": error}, rows=len(rows), **beside)


def write_forms(folder: Path) -> None:
    """Write the table in every form, the same bytes each time."""
    folder.mkdir()
    (folder / "lines.txt").write_text("\n".join(row["text"] for row in TABLE), encoding="utf-8")
    (folder / "chat.txt").write_text(CHAT, encoding="utf-8")
    written = _delimited(",")
    (folder / "table.csv").write_text(written, encoding="utf-8")
    (folder / "bom.csv").write_text(written, encoding="utf-8-sig")
    (folder / "cp949.csv").write_text(written, encoding="cp949")
    (folder / "utf16.csv").write_text(written, encoding="utf-16")
    (folder / "semicolons.csv").write_text(_delimited(";"), encoding="utf-8")
    (folder / "table.tsv").write_text(_delimited("\t"), encoding="utf-8")
    (folder / "table.csv.gz").write_bytes(gzip.compress(written.encode(), mtime=0))
    lines = [json.dumps(row | {"tags": ["a"]}, ensure_ascii=False) for row in TABLE]
    (folder / "objects.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "array.json").write_text(f"[{','.join(lines)}]", encoding="utf-8")
    table = pd.DataFrame(TABLE).assign(stars=pd.Series([5, 1, None, 3, 2.5, 4]))
    table.to_parquet(folder / "table.parquet")
    _write_workbook(folder / "book.xlsx")
    inside = folder / "folder"
    inside.mkdir()
    (inside / "a.csv").write_text(written, encoding="utf-8")
    (inside / "b.txt").write_text("첫째 줄입니다\n\n둘째 줄입니다\n", encoding="utf-8")
    (inside / "README.md").write_text("설명", encoding="utf-8")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    (folder / "damaged.xlsx").write_bytes(b"PK\x03\x04 no workbook")


def _delimited(delimiter: str) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(TABLE[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(TABLE)
    return out.getvalue()


def _write_workbook(path: Path) -> None:
    book = openpyxl.Workbook(write_only=True)
    for name, shift in (("1월", 0), ("2월", 10)):
        sheet = book.create_sheet(name)
        sheet.append(list(TABLE[0]))
        for row in TABLE:
            cells: list[Any] = [int(row["id"]) + shift, row["text"] or None, row["label"] or None]
            sheet.append([*cells, float(row["stars"]) if row["stars"] else None])
    book.create_sheet("메모").append(["표가 아닌 것"])
    book.save(path)
