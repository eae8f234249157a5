"""The examples of docs/reference/classifier.md print what they show."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "reference" / "classifier.md"


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
    page = PAGE.read_text(encoding="utf-8")
    # The fence behind the last line of a block is no output.
    code = "\n".join(line for line in page.splitlines() if not line.startswith("```"))
    test = doctest.DocTestParser().get_doctest(code, {}, PAGE.name, str(PAGE), 0)
    assert page.count("## ") >= 10 and len(test.examples) >= 20
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)
