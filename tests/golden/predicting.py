"""A text to its label: predict in every form, explain, export."""

import json
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd

from tests.golden import product
from tests.golden.entries import Golden

# Made by `training`; of one label, of several, of a value for two texts.
MODELS = {"quick": "memos.csv", "single": "memos.csv", "multi": "multi.csv", "value": "value.csv"}


def run(golden: Golden) -> None:
    """Label the texts by the models just made, and by a released one."""
    for model, data in MODELS.items():
        _predict(golden, f"predict/{model}/csv", f"kfold-{model}/model", data, f"{model}-out.csv")
    for form in ("xlsx", "jsonl", "parquet"):
        output = f"single-out.{form}"
        _predict(golden, f"predict/single/{form}", "kfold-single/model", "forms/book.xlsx", output)
    released = "checkpoints/malmoi-small-memos"
    _predict(golden, "predict/released/csv", released, "memos.csv", "released-out.csv")
    for model in ("kfold-single/model", released):
        text = "내일 오후 세 시에 치과 예약을 했다"
        explained = product.run_malmoi("explain", text, "--model", model, "--engine", "torch-fp32")
        golden.add(f"explain/{Path(model).parts[0]}", explained.done().out, of_cpu=True)
    _export(golden)


def _predict(golden: Golden, name: str, model: str, data: str, output: str) -> None:
    product.run_malmoi(
        *("predict", data, "--model", model, "--output", output, "--engine", "torch-fp32")
    ).done()
    cells = cells_of(Path(output))
    golden.add(name, cells, of_cpu=True, rows=len(cells))
    columns = [str(column) for column in cells[0]]
    golden.add(f"{name}/columns", columns, columns=len(columns))


def cells_of(path: Path) -> list[Any]:
    """The cells of a table that was written, as a program of somebody else's reads them."""
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path)
        return [list(row) for sheet in book for row in sheet.iter_rows(values_only=True)]
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_dict("records")
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")


def _export(golden: Golden) -> None:
    """Names of all files; contents of those in text, which nothing of the machine is in."""
    product.run_malmoi("export", "kfold-multi/model", "--output", "exported").done()
    files = sorted(path for path in Path("exported").rglob("*") if path.is_file())
    golden.add("export/files", [str(path) for path in files], files=len(files))
    for path in files:
        name = f"export/{path.relative_to('exported')}"
        if path.suffix == ".json":
            golden.add(name, json.loads(path.read_text(encoding="utf-8")), of_cpu=True)
        elif path.suffix in (".safetensors", ".html", ".md", ".py", ".txt"):
            golden.add(name, path.read_bytes(), of_cpu=True)
