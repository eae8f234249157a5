"""The notebooks of docs/ run in a kernel of Jupyter, where a mistake is one line."""

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
# What a notebook is given besides: mistakes, and long work.
MORE = """from malmoi import Classifier
Classifier.load("none")
---
import io, time
from contextlib import redirect_stderr
from malmoi.progress import shown_progress
drawn = io.StringIO()
with redirect_stderr(drawn), shown_progress() as show:
    for done in range(3):
        show("predicting", done, 3)
        time.sleep(0.2)
print("predicting" in drawn.getvalue())
"""


def executed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """The cells of code of each notebook, and of `MORE`, with their outputs.

    They are run in a folder that has what a clone has, by one kernel, which forgets all names in
    between: to import torch takes longer than most of the cells.
    """
    for name in ("corpora", "checkpoints"):
        (folder / name).symlink_to(ROOT / name)
    monkeypatch.setenv("MALMOI_HOME", str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    whole, found = nbformat.v4.new_notebook(), {}
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        found[path.stem] = [cell for cell in cells if cell.cell_type == "code"]
    found["more"] = list(map(nbformat.v4.new_code_cell, MORE.split("---\n")))
    found["more"][0].metadata["tags"] = ["raises-exception"]
    for cells in found.values():
        whole.cells += [nbformat.v4.new_code_cell("%reset -f"), *cells]
    NotebookClient(whole, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return found


def html_of(cell: Any) -> str:
    return "".join(one.data.get("text/html", "") for one in cell.outputs if "data" in one)


def test_the_notebooks_show_tables_and_pictures_and_mistakes_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = executed(tmp_path, monkeypatch)
    first = found["first-classifier"]
    shown = list(map(html_of, first))
    assert "<iframe" in shown[1] and "macro_f1" in shown[1]
    assert any("rgba(" in html for html in shown)
    assert "Warning" not in "".join(one.get("text", "") for one in first[1].outputs)
    wrong, drawn = (cell.outputs[-1] for cell in found["more"])
    assert len(wrong.traceback) == 1 and wrong.traceback[0].startswith("InputError: ")
    assert drawn.text == "True\n"
    assert (tmp_path / "my-model").is_dir() and (tmp_path / "report.xlsx").is_file()


def test_notebooks_are_kept_without_what_a_run_has_left() -> None:
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
