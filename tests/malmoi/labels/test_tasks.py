"""Tasks are data: what task.toml says, and what is refused in it."""

import hashlib
from pathlib import Path

import pytest

from malmoi.errors import InputError
from malmoi.labels.tasks import own_tasks, read_task, task_named, task_with_labels
from malmoi.text.reading.records import iter_records
from malmoi.text.reading.sources import find_sources

ROOT = Path(__file__).parents[3]
CORPORA = ROOT / "corpora"
LABELS = 'labels = [{ name = "가", key = "1" }, { name = "나", key = "2" }]\n'


def write_task(folder: Path, content: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.toml").write_text(content, encoding="utf-8")
    return folder


def test_the_projects_own_tasks() -> None:
    for name, labels in (
        ("memos", ["꿈", "일기", "일정", "메모", "오류"]),
        ("reviews", ["부정", "중립", "긍정"]),
    ):
        task = read_task(CORPORA / name)
        assert task.label_names == labels and task.name == name
        assert task.guideline and task.prompt and "{labels}" in task.prompt, name
        assert all(label.meaning and label.color and label.key for label in task.labels), name
        assert all(label in task.guideline and label in task.prompt for label in labels), name
        records = iter_records(
            task.data, text_column=task.text_column, label_column=task.label_column, need_label=True
        )
        assert {record.label for record in records} == set(labels), name


def test_answers_to_the_prompts_stay_valid() -> None:
    """A language model's answers are kept by what was sent: another byte, and all is paid anew."""
    for name, sha256 in (
        ("memos", "ab8b64318c3eba12694891e529275d8d2557815475a27fd218253848050e9656"),
        ("reviews", "ddeaa17ca5437ffc7991d9301e5d081fd3debce27f67130539fa732b36d18109"),
    ):
        prompt = (read_task(CORPORA / name).prompt or "").strip()
        assert hashlib.sha256(prompt.encode()).hexdigest() == sha256, name


def luminance(color: str) -> float:
    """Relative luminance of #rrggbb, 0 to 1 (WCAG 2.2)."""
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colors_stand_out_on_light_and_on_dark() -> None:
    """3 to 1 is what WCAG 2.2 (1.4.11) asks of a mark, on white and on Streamlit's dark page."""
    for name in ("memos", "reviews"):
        dark = luminance("#0e1117")
        for label in read_task(CORPORA / name).labels:
            light = luminance(label.color or "")
            assert 1.05 / (light + 0.05) >= 3 and (light + 0.05) / (dark + 0.05) >= 3, name


def test_a_corpus_folder_is_read_without_its_task(caplog: pytest.LogCaptureFixture) -> None:
    for name in ("comments", "memos", "reviews"):
        names = {source.name for source in find_sources(CORPORA / name)}
        assert (
            names and all(one.endswith((".txt", ".csv")) for one in names) and not caplog.records
        ), name


def test_what_a_file_leaves_out(tmp_path: Path) -> None:
    task = read_task(write_task(tmp_path / "spam", LABELS))
    assert (task.name, task.title, task.data) == ("spam", "spam", tmp_path / "spam")
    assert task.guideline is None and task.prompt is None and task.text_column is None
    first = task.labels[0]
    assert (first.title, first.color, first.meaning, first.ratings) == ("가", None, "", None)


def test_tasks_are_found_by_labels_and_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MALMOI_HOME", str(tmp_path))
    assert own_tasks() == [] and task_named("spam") is None
    write_task(tmp_path / "corpora" / "spam", LABELS)
    found = task_with_labels(["나", "가"])
    assert found is not None and found == task_named("spam")
    assert task_with_labels(["가"]) is None and task_with_labels(["가", "나", "다"]) is None
    write_task(tmp_path / "corpora" / "other", LABELS)
    with pytest.raises(InputError, match=r"one task with the labels 가, 나, found .*other.*spam"):
        task_with_labels(["가", "나"])


TWO = '{ name = "가" }, { name = "나" }'


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    for content, message in (
        ("labels = [", "not a task in TOML: "),
        ("", "expected at least two labels"),
        ('labels = [{ name = "가" }]', "expected at least two labels"),
        ('labels = ["가", "나"]', "label 1: expected a table"),
        ('labels = [{ key = "1" }, { name = "나" }]', "label 1: expected a name, found none"),
        (f"labels = [{TWO}]\nguidline = ''", "unknown key guidline; did you mean guideline?"),
        (f"labels = [{TWO}]\nzzz = 1", "unknown key zzz; known: name, title"),
        (f"labels = [{TWO}]\nname = 3", "expected name as a text in quotes, found 3"),
        (f"labels = [{TWO}]\ncolumns = 3", "expected a table [columns], found 3"),
        (f"labels = [{TWO}]\n[columns]\nlable = 'x'", "unknown key lable; did you mean label?"),
        ('labels = [{ name = "가" }, { name = " 가" }]', "have the same name '가'"),
        (
            'labels = [{ name = "가", key = "1" }, { name = "나", key = "1" }]',
            "labels 가 and 나 have the same key '1'; give each its own",
        ),
        (
            'labels = [{ name = "가", color = "#AAAAAA" }, { name = "나", color = "#aaaaaa" }]',
            "labels 가 and 나 have the same color",
        ),
        ('labels = [{ name = "가", key = "ㄱ" }, { name = "나" }]', "one of 0 to 9 or a to z"),
        ('labels = [{ name = "가", color = "red" }, { name = "나" }]', "expected color as #rrggbb"),
        ('labels = [{ name = "가", meaning = "a\\nb" }, { name = "나" }]', "meaning in one line"),
        ('labels = [{ name = "가", colour = "#aaaaaa" }, { name = "나" }]', "did you mean color?"),
        ('labels = [{ name = "가", ratings = [4, 1] }, { name = "나" }]', "[lowest, highest]"),
        (
            'labels = [{ name = "가", ratings = [1, 4] }, { name = "나", ratings = [4, 5] }]',
            "labels 가 and 나 share the rating 4",
        ),
    ):
        folder = write_task(tmp_path, content)
        with pytest.raises(InputError) as caught:
            read_task(folder)
        assert str(caught.value).startswith(f"{folder / 'task.toml'}: "), content
        assert message in str(caught.value) and "\n" not in str(caught.value), content


def test_a_missing_task_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a task to read, found No such file"):
        read_task(tmp_path)
