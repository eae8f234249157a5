"""Journeys of labels: into a project by a file, by the card's keys, and out again."""

import json
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from malmoi.app.labelling.card_server import answer
from malmoi.app.labelling.messages import read_message
from malmoi.labels.access import ProjectAccess
from malmoi.labels.label_names import normal_label
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore, read_project
from malmoi.text.cleaning.cleaner import clean_text
from tests.journeys.files import (
    DIRT,
    MAY_BE_REFUSED,
    ODD_LABELS,
    TEXT_FORMS,
    DirtyFile,
    in_cp949,
)
from tests.journeys.laws import journey, must_be_read, render, run, table_of
from tests.journeys.strategies import SENTENCES, files, journeys

TABLES = ("csv", "tsv", "jsonl", "json", "parquet", "xlsx")
LOCAL = Person(name="지은", is_local=True)


def _label_names(file: DirtyFile) -> list[str]:
    """The labels of the file as it can hold them: CP949 has no emoji."""
    names = [ODD_LABELS[one] if "odd labels" in file.dirt else one for one in SENTENCES]
    if file.encoding == "cp949" and file.form in TEXT_FORMS:
        names = [in_cp949(name) for name in names]
    return [normal_label(name) for name in names]


@cache
def _empty_database() -> bytes:
    """A database without a project: to make its tables takes longer than a journey."""
    with tempfile.TemporaryDirectory() as folder:
        store = ProjectStore(f"sqlite:///{folder}/labels.db")
        store.list(LOCAL)
        store.engine.dispose()
        return Path(folder, "labels.db").read_bytes()


def _project(home: Path, name: str, file: DirtyFile) -> tuple[ProjectAccess, str]:
    """A project in a database of its own, and the database."""
    names = _label_names(file)
    (home / f"{name}.db").write_bytes(_empty_database())
    url = f"sqlite:///{home}/{name}.db"
    new = NewProject(
        name=name,
        labels=[ProjectLabel(name=one) for one in names],
        kind="single",
        settings=ProjectSettings(text_order="plain"),
    )
    return ProjectStore(url).create(LOCAL, new), url


def _exported(database: str, form: str) -> list[dict[str, Any]]:
    path = Path(f"{Path(database).stem}-낸.{form}")
    done = run("labels", "export", path, "--database", database, "--all-texts")
    assert done.code == 0, done
    return table_of(path)


# A quoted text over two lines in a row with a field too many: its halves are no texts.
KEPT = DirtyFile(
    rows=(("배송이 빨라서 정말 좋았어요", "긍정"),),
    form="tsv",
    dirt=("blank at start", "blank in middle", "line breaks in cells", "long rows"),
    seed=1,
)


@journeys(
    100,
    [{"file": KEPT, "form": "csv"}],
    file=files(forms=TABLES),
    form=st.sampled_from(("csv", "xlsx", "jsonl", "json", "parquet")),
)
def test_labels_of_a_file_come_in_and_go_out(file: DirtyFile, form: str) -> None:
    with journey() as home:
        written = render(file, home)
        _, database = _project(home, "하나", file)
        flags = ["--database", database, "--label-column", written.label_column]
        done = run("labels", "import", written.path, *flags)
        if not must_be_read(written, done):
            return
        rows = _exported(database, form)
        # Each text once, in order, as it stands in its first row.
        expected: dict[str, set[str]] = {}
        for text, label in zip(written.texts, written.labels, strict=True):
            if text.strip() and (clean := clean_text(text)):
                expected.setdefault(clean, set()).add(normal_label(label))
        texts = [clean_text(_plain(row["text"])) for row in rows]
        left_out = [line for line in done.err.splitlines() if line.startswith("left out: ")]
        if written.must_be_read or not left_out:
            assert texts == list(expected)
        else:
            # What a reader may refuse, an import leaves out and names.
            assert set(texts) <= set(expected)
        for row, text in zip(rows, texts, strict=True):
            labels = expected[text]
            assert _plain(row["label"]) in labels | {""}, row
            assert bool(_plain(row["label"])) == bool(labels - {""}), row
        # Again, nothing changes; and what came out goes into another project.
        assert run("labels", "import", written.path, *flags).code == 0
        assert _exported_texts(rows) == _exported_texts(_exported(database, "jsonl"))
        _, second = _project(home, "둘", file)
        again = ["--database", second, "--label-column", "label"]
        assert run("labels", "import", f"하나-낸.{form}", *again).code == 0
        assert _exported_texts(rows) == _exported_texts(_exported(second, "jsonl"))


def _plain(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell)


def _exported_texts(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(clean_text(_plain(row["text"])), _plain(row["label"])) for row in rows]


def _label_all(access: ProjectAccess, file: DirtyFile) -> Counter[str]:
    """Give every text a label by the card's messages, some of them with an undo or twice."""
    given: Counter[str] = Counter()
    labels = [{"id": one.id, "name": one.name} for one in read_project(access).labels]
    for turn in range(100):
        message: dict[str, Any] = {"sequence": turn, "scope": "", "acts": [], "wants": True}
        card = answer(access, read_message(message))
        assert card.failed is None
        if not card.texts:
            return given
        acts = []
        for handed in card.texts:
            label = labels[(handed["text_id"] + file.seed) % len(labels)]
            act = {name: handed[name] for name in ("text_id", "sha256", "offer")}
            act |= {"kind": "label", "labels": [label], "guideline_version": 1, "seconds": 0.5}
            acts.append(act | {"request_id": f"{file.seed}-{handed['text_id']}"})
            given[str(label["name"])] += 1
        send = message | {"acts": acts, "wants": False}
        assert len(answer(access, read_message(send)).saved) == len(acts)
        # The answer was lost, and the card sends them again.
        again = answer(access, read_message(send))
        assert len(again.saved) == len(acts) and again.labels == 0
    raise AssertionError("texts are handed out for ever")


@journeys(10, file=files(dirt=sorted(set(DIRT) - MAY_BE_REFUSED), least=24, most=40))
def test_from_a_file_to_labels_to_a_model_and_back(file: DirtyFile) -> None:
    with journey() as home:
        written = render(file, home)
        access, database = _project(home, "하나", file)
        done = run("labels", "import", written.path, "--database", database)
        if not must_be_read(written, done):
            return
        given = _label_all(access, file)
        rows = _exported(database, "csv")
        assert Counter(row["label"] for row in rows) == given

        # The database is what k-fold reads; where it can learn, its model labels the file.
        labels = ",".join(sorted(given))
        data = ["--data", f"{database}#하나", "--quick", "--folds", "2", "--output", "학습"]
        trained = run("kfold", *data, *(["--labels", labels] if _plain_names(given) else []))
        if trained.refused:
            assert len(rows) < 20 or min(given.values()) < 2, trained.err
            return
        report = json.loads(Path("학습/report.json").read_text(encoding="utf-8"))
        assert report["data"]["texts"] + sum(report["data"]["left_out"].values()) == len(rows)
        predicted = run("predict", written.path, "--model", "학습/model", "--output", "답.csv")
        assert predicted.code == 0, predicted
        _, second = _project(home, "둘", file)
        again = ["--database", second, "--label-column", _new_label(table_of(Path("답.csv")))]
        assert run("labels", "import", "답.csv", *again).code == 0
        found = _exported_texts(_exported(second, "csv"))
        assert [text for text, _ in found] == [clean_text(_plain(row["text"])) for row in rows]
        assert {label for _, label in found} <= set(given)


def _plain_names(labels: Counter[str]) -> bool:
    return not any("," in label for label in labels)


def _new_label(rows: list[dict[str, Any]]) -> str:
    return next(name for name in reversed(list(rows[0])) if name.split(" (")[0] == "label")
