"""What k-fold makes of label columns as people hand them in, and of labels with few texts."""

from pathlib import Path

import pytest

from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore, change_labels, read_project
from tests.malmoi.finetune.conftest import save_labels, separable
from tests.malmoi.finetune.test_kfold import QUICK, Run, kfold, left_behind
from tests.malmoi.finetune.test_kfold_linear import NO_MORPHEMES, rows_of
from tests.malmoi.finetune.test_kfold_tasks import (
    WriteTable,
    report_of,
    several_labels,
    write_table,
)

__all__ = ["kfold", "write_table"]

ALONE = ["--quick", "--folds=3", NO_MORPHEMES, "--output=run"]


def test_a_label_that_is_a_missing_value_is_asked_about(
    kfold: Run, write_table: WriteTable
) -> None:
    for cell in ("NULL", "None", "\\N", "#N/A", "N/A", "nan", "NaN", "<NA>"):
        texts = [(f"아무 말 {place}", cell) for place in range(6)]
        data = write_table(("text", "label"), [*separable(), *texts])
        for flags in ([], ["--task=multi"]):
            code, _, errors = kfold(f"--data={data}", *QUICK, *flags, labels=None)
            assert (code, errors.count("\n")) == (2, 1), errors
            assert "6 of 69 rows" in errors and cell in errors, errors
            assert "data.skip_unlabelled=true" in errors and "--labels" in errors
            assert left_behind() == []
    skip = "--set=data.skip_unlabelled=true"
    assert kfold(f"--data={data}", *ALONE, skip, labels=None, linear=True)[0] == 0
    assert report_of("run")["data"]["left_out"]["unlabelled"] == 6
    named = [*ALONE[:-1], "--output=named"]
    assert kfold(f"--data={data}", *named, labels="꿈,일기,일정,<NA>", linear=True)[0] == 0
    assert report_of("named")["data"]["per_label"]["<NA>"] == 6
    # In small letters it is what people call a label.
    data = write_table(("text", "label"), [(text, "none") for text, _ in texts] + separable())
    assert kfold(f"--data={data}", *ALONE[:-1], "--output=none", labels=None, linear=True)[0] == 0


def test_mixed_separators_make_no_further_label(kfold: Run, write_table: WriteTable) -> None:
    rows = several_labels()
    for mark in (";", "|", "#"):
        mixed = [
            (text, labels.replace(",", mark) if place % 3 else labels)
            for place, (text, labels) in enumerate(rows)
        ]
        data = write_table(("text", "label"), [*mixed, *separable()])
        run = f"run{ord(mark)}"
        flags = ["--task=multi", *QUICK, "--folds=2", f"--output={run}"]
        code, output, errors = kfold(f"--data={data}", *flags, labels=None)
        assert (code, errors) == (0, "")
        assert list(report_of(run)["data"]["per_label"]) == ["꿈", "일기", "일정"]
        assert f"any of , {mark} stands between" in output
    # Names have these, too, so that somebody has to say what is meant.
    slashes = [
        (text, labels.replace(",", "/") if place % 3 else labels)
        for place, (text, labels) in enumerate(rows)
    ]
    data = write_table(("text", "label"), [*slashes, *separable()])
    flags = ["--task=multi", *QUICK, "--folds=2", "--output=slashes"]
    code, _, errors = kfold(f"--data={data}", *flags, labels=None)
    assert (code, errors.count("\n")) == (2, 1)
    assert '--set data.label_separator=", /"' in errors, errors
    flags.append("--set=data.label_separator=, /")
    assert kfold(f"--data={data}", *flags, labels=None)[0] == 0
    assert list(report_of("slashes")["data"]["per_label"]) == ["꿈", "일기", "일정"]


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (("0.2", "0.7", "0.1"), "shares"),
        (("20%", "70%", "10%"), "shares"),
        (("1", "0", "2"), "votes"),
    ],
)
def test_shares_and_votes_in_columns_are_named(
    kfold: Run, write_table: WriteTable, cells: tuple[str, ...], what: str
) -> None:
    turned = [cells, cells[1:] + cells[:1], cells[2:] + cells[:2]]
    rows = [(text, *turned[place % 3]) for place, (text, _) in enumerate(separable())]
    data = write_table(("text", "긍정", "부정", "중립"), rows)
    for flags in ([], ["--task=multi"], ["--task=multi", "--label-column=긍정,부정,중립"]):
        code, _, errors = kfold(f"--data={data}", *QUICK, *flags, labels=None)
        assert (code, errors.count("\n")) == (2, 1)
        assert f"{what} in the columns 긍정, 부정, 중립" in errors, errors
    assert left_behind() == []


def test_a_label_with_few_texts_has_a_way_on(kfold: Run, write_table: WriteTable) -> None:
    rows = [("아무 말이나 했다", "잡담"), ("그냥 떠들었다", "잡담"), ("하하 웃었다", "농담")]
    data = write_table(("text", "label"), [*separable(), *rows])
    code, _, errors = kfold(f"--data={data}", *ALONE, labels=None, linear=True)
    assert (code, errors.count("\n"), left_behind()) == (2, 1, [])
    assert "농담" in errors and "잡담" in errors and "--rare drop" in errors
    code, output, _ = kfold(f"--data={data}", *ALONE, "--rare=drop", labels=None, linear=True)
    assert code == 0 and "left out 3 texts of" in output
    assert report_of("run")["data"]["left_out"]["rare"] == 3
    assert report_of("run")["data"]["rare"] == {"농담": 1, "잡담": 2}
    assert {row["label"] for row in rows_of(Path("run/predictions.csv"))} == {"꿈", "일기", "일정"}
    flags = [*ALONE[:-1], "--output=joined", "--rare=join"]
    assert kfold(f"--data={data}", *flags, labels=None, linear=True)[0] == 0
    assert report_of("joined")["data"]["per_label"]["기타"] == 3
    flags = [*ALONE[:-1], "--output=kept", "--rare=keep"]
    code, _, errors = kfold(f"--data={data}", *flags, labels=None, linear=True)
    assert code == 2 and "농담 (1" in errors and "잡담" not in errors.split("농담")[0]
    data = write_table(("text", "label"), [*separable(), *rows[:2]])
    code, output, _ = kfold(f"--data={data}", *flags, labels=None, linear=True)
    assert code == 0 and "잡담 are in 2 groups: 1 of 3 folds are without it" in output
    assert report_of("kept")["data"]["per_label"]["잡담"] == 2
    several = several_labels()
    data = write_table(("text", "label"), [*several, ("하하 웃었다", "꿈,농담")])
    flags = ["--task=multi", *QUICK, "--folds=2", "--output=several", "--rare=drop"]
    assert kfold(f"--data={data}", *flags, labels=None)[0] == 0
    assert report_of("several")["data"]["texts"] == len(several)


def test_a_project_says_what_of_it_is_not_learnt(kfold: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/labels.db"
    save_labels(url, [*separable(), *[(f"옛말 {number}", "옛말") for number in range(3)]])
    access = ProjectStore(url).access(Person(name="다라", is_local=True), "메모")
    act = Act(text_id=1, kind="label", labels=["옛말"], request_id="differs")
    save_acts(access, [act])
    change_labels(access, [one for one in read_project(access).labels if one.name != "옛말"])
    code, output, errors = kfold(f"--data={tmp_path}/labels.db", *ALONE, labels=None, linear=True)
    assert (code, errors) == (0, "")
    assert "1 texts on which annotators differ" in output
    assert "3 texts whose label is retired" in output
    assert sorted(report_of("run")["data"]["per_label"]) == ["꿈", "일기", "일정"]
