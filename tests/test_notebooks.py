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


def executed(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, *cells: str) -> Any:
    """The notebook with its outputs, run in a folder that has what a clone has."""
    for name in ("corpora", "checkpoints"):
        (folder / name).symlink_to(ROOT / name)
    monkeypatch.setenv("MALMOI_HOME", str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    for cell in cells:
        notebook.cells.append(nbformat.v4.new_code_cell(cell))
        notebook.cells[-1].metadata["tags"] = ["raises-exception"]
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}})
    return client.execute()


def html_of(cell: Any) -> str:
    return "".join(one.data.get("text/html", "") for one in cell.outputs if "data" in one)


def test_the_first_notebook_shows_tables_and_pictures_and_mistakes_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / "docs" / "notebooks" / "first-classifier.ipynb"
    notebook = executed(path, tmp_path, monkeypatch, *MORE.split("---\n"))
    shown = [html_of(cell) for cell in notebook.cells if cell.cell_type == "code"]
    assert "<iframe" in shown[1] and "macro_f1" in shown[1]
    assert any("rgba(" in html for html in shown)
    assert "Warning" not in "".join(one.get("text", "") for one in notebook.cells[3].outputs)
    wrong, drawn = (cell.outputs[-1] for cell in notebook.cells[-2:])
    assert len(wrong.traceback) == 1 and wrong.traceback[0].startswith("InputError: ")
    assert drawn.text == "True\n"
    assert (tmp_path / "my-model").is_dir()
    if (folder := os.environ.get("MALMOI_KEEP_NOTEBOOKS")) is not None:
        nbformat.write(notebook, Path(folder) / path.name)


OTHERS = [path for path in NOTEBOOKS if path.stem != "first-classifier"]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.stem)
def test_the_other_notebooks_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed(path, tmp_path, monkeypatch)


def test_notebooks_are_kept_without_what_a_run_has_left() -> None:
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
