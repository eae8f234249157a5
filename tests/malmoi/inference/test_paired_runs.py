"""Two runs are compared on the texts that both have, one by one."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.finetune.evaluation.scores import macro_f1
from malmoi.inference.paired_runs import compare_runs, run_folder
from malmoi.text.reading.spreadsheet_cells import guarded_row

LABELS = ("긍정", "부정", "중립")
HEADER = ["id", "text", "label", "predicted", "fold", "seed", "probability 긍정"]


def run(folder: Path, rows: Sequence[tuple[str, str, str]], *more: tuple[str, str, str]) -> Path:
    """A run with these texts, labels and predictions; `more` of a second seed."""
    folder.mkdir(parents=True)
    with (folder / "predictions.csv").open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for seed, part in enumerate((rows, more)):
            for place, row in enumerate(part):
                writer.writerow(guarded_row([f"{folder.name}:{place}", *row, 1, seed, "0.5"]))
    return folder


def said(predicted: Sequence[str]) -> list[tuple[str, str, str]]:
    """Of as many texts, whose labels take turns."""
    return [(f"=글 {n}", LABELS[n % 3], one) for n, one in enumerate(predicted)]


def given(texts: int) -> list[str]:
    return [LABELS[n % 3] for n in range(texts)]


def test_scores_are_those_of_the_report(tmp_path: Path) -> None:
    predicted = [LABELS[n % 2] for n in range(60)], [LABELS[n % 5 % 3] for n in range(60)]
    found = compare_runs(
        run(tmp_path / "a", said(predicted[0])), run(tmp_path / "b", said(predicted[1]))
    )
    ids = [[LABELS.index(one) for one in part] for part in (given(60), *predicted)]
    assert found.first_f1 == pytest.approx(macro_f1(ids[0], ids[1], 3))
    assert found.second_f1 == pytest.approx(macro_f1(ids[0], ids[2], 3))
    right = [[one == label for label, one in zip(ids[0], part, strict=True)] for part in ids[1:]]
    pairs = list(zip(*right, strict=True))
    alone = pairs.count((True, False)), pairs.count((False, True))
    assert (found.first_alone, found.second_alone) == alone
    assert found.differing[0].text.startswith("=글")


def test_a_difference_is_told_from_chance_where_intervals_of_scores_overlap(tmp_path: Path) -> None:
    texts = 300
    # The second is wrong where the first is, but for every 20th text.
    wrong = [n for n in range(texts) if n % 2]
    first = [LABELS[(n + 1) % 3] if n in wrong else LABELS[n % 3] for n in range(texts)]
    second = [LABELS[n % 3] if n % 20 == 1 else one for n, one in enumerate(first)]
    runs = run(tmp_path / "a", said(first)), run(tmp_path / "b", said(second))
    found = compare_runs(*runs)
    assert found.is_sure and 0 < found.low < found.second_f1 - found.first_f1 < found.high
    assert (found.first_alone, found.second_alone) == (0, 15)
    back = compare_runs(*reversed(runs))
    assert back.is_sure and back.high < 0
    same = compare_runs(runs[0], runs[0])
    assert not same.is_sure and same.low == same.high == 0 and not same.differing


def test_only_texts_with_one_label_in_both_count(tmp_path: Path) -> None:
    rows = said(given(9))
    other = [("다른 글", "긍정", "긍정"), (rows[0][0], "부정", "부정"), *rows[1:]]
    runs = run(tmp_path / "a", rows, ("=글 1", "부정", "긍정")), run(tmp_path / "b", other)
    found = compare_runs(*runs)
    assert (found.texts, found.second_f1, found.first_f1) == (8, 1, 1)
    with pytest.raises(InputError, match="equal labels"):
        compare_runs(runs[0], run(tmp_path / "c", [("없는 글", "긍정", "긍정")]))


def test_what_is_no_run_of_labels_is_refused(tmp_path: Path) -> None:
    good = run(tmp_path / "good", said(given(3)))
    several = run(tmp_path / "several", [("글", '["긍정"]', "[]")])
    with pytest.raises(InputError, match="one label a text"):
        compare_runs(good, several)
    values = run(tmp_path / "values", said(given(3)))
    text = (values / "predictions.csv").read_text("utf-8-sig").replace("probability 긍정", "x")
    (values / "predictions.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="found values"):
        compare_runs(good, values)
    (values / "predictions.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"wrote in .*values"):
        compare_runs(good, values)


def test_the_command_takes_names_and_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "runs/finetune/first", said(given(30)))
    other = run(tmp_path / "elsewhere/second", said(["긍정"] * 30))
    # A stray file is no run of whatever name.
    (tmp_path / "predictions.csv").write_text("", encoding="utf-8")
    assert run_folder("first").name == "first"
    assert run_folder(str(other / "model")) == other
    assert main(["compare", "first", str(other), "--texts=1"]) == 0
    output = capsys.readouterr().out
    assert "first is better" in output and "20 texts the first, 0 the second" in output
    assert output.count("=글") == 1
    assert main(["compare", "first", "nobody"]) == 2
