"""The examples of docs/reference/classifier.md and docs/how-to/python.md print what they show."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLASSIFIER, PYTHON = ROOT / "docs/reference/classifier.md", ROOT / "docs/how-to/python.md"


def test_the_page_of_the_classifier(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    several_labels_model: Path,
    pairs_model: Path,
    values_model: Path,
) -> None:
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    own = {"my-topics": several_labels_model, "my-pairs": pairs_model, "my-values": values_model}
    for name, model in own.items():
        (tmp_path / "runs" / "finetune" / name).mkdir(parents=True)
        (tmp_path / "runs" / "finetune" / name / "model").symlink_to(model)
    assert run(CLASSIFIER) >= 20


def test_the_page_of_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpora").symlink_to(ROOT / "corpora")
    assert run(PYTHON) >= 20


def run(path: Path) -> int:
    """Run the examples of a page; how many there are."""
    page = path.read_text(encoding="utf-8")
    # The fence behind the last line of a block is no output.
    code = "\n".join(line for line in page.splitlines() if not line.startswith("```"))
    test = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
    report: list[str] = []
    options = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    doctest.DocTestRunner(optionflags=options).run(test, out=report.append)
    assert not report, "".join(report)
    return len(test.examples)
