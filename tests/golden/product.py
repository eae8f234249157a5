"""All that the golden manifest takes from the product; a module that moves is renamed here only.

Commands are called as their `main` is, in this process; what no command shows is given back as
plain lists and dictionaries.
"""

import contextlib
import io
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import malmoi.__main__
import malmoi.finetune.kfold
import malmoi.finetune.plan
import malmoi.pretrain.plan
import malmoi.pretrain.run
from malmoi.app.labelling.card_server import answer
from malmoi.app.labelling.messages import read_message
from malmoi.command_line import run_command
from malmoi.errors import InputError
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.data.row_format import RowFormat
from malmoi.finetune.run_config import read_config as read_kfold
from malmoi.finetune.settings import RECIPES as KFOLD_RECIPES
from malmoi.finetune.settings import KfoldSettings
from malmoi.inference.tasks import Task
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.projects import ProjectStore, set_member
from malmoi.labels.review import adjudicate
from malmoi.labels.roles import Role
from malmoi.labels.stored_text import sha256_of
from malmoi.labels.text_import import import_texts
from malmoi.labels.text_state import require_text
from malmoi.pretrain.config.run_config import read_config as read_pretraining
from malmoi.pretrain.config.settings import RECIPES as PRETRAIN_RECIPES
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.settings import recipe_names
from malmoi.text.reading.notes import ReadingNotes
from malmoi.text.reading.options import ReadOptions
from malmoi.text.reading.records import iter_records, iter_whole_rows
from malmoi.text.reading.sources import find_sources


@dataclass(frozen=True)
class Said:
    """What a command has printed, and how it ended."""

    code: int
    out: str
    error: str

    def done(self) -> "Said":
        """Itself, where it ended well.

        Raises:
            RuntimeError: it did not.
        """
        if self.code:
            raise RuntimeError(f"exit code {self.code}: {self.error.strip()[-500:]}")
        return self


def _heard(call: Callable[[], int]) -> Said:
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            code = call()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except Exception:
            code = 1
            traceback.print_exc()
    return Said(code, out.getvalue(), error.getvalue())


def run_malmoi(*arguments: str) -> Said:
    """`malmoi …`."""
    return _heard(lambda: malmoi.__main__.main(arguments))


def run_tokenizer(*arguments: str) -> Said:
    """`malmoi tokenizer …`."""
    return _heard(lambda: malmoi.__main__.main(["tokenizer", *arguments]))


def run_pretraining(*arguments: str) -> Said:
    """`python pretrain/run.py …`."""
    main, name = malmoi.pretrain.run.main, "pretrain/run.py"
    return _heard(
        lambda: run_command(PretrainSettings, main, "", arguments=arguments, program=name)
    )


def run_kfold(*arguments: str) -> Said:
    """`python finetune/kfold.py …`."""
    main, name = malmoi.finetune.kfold.main, "finetune/kfold.py"
    return _heard(lambda: run_command(KfoldSettings, main, "", arguments=arguments, program=name))


COMMANDS: dict[str, Callable[..., Said]] = {
    "malmoi": run_malmoi,
    "tokenizer": run_tokenizer,
    "kfold": run_kfold,
    "pretrain": run_pretraining,
}

PEOPLE: dict[str, Role] = {"가": "annotator", "나": "annotator", "다": "reviewer"}

# What a reader found: its rows, how it has read them, and the one line in which it gave up.
Read = tuple[list[dict[str, Any]], Any, str]


def _read(rows: Callable[[ReadingNotes], Iterator[dict[str, Any]]]) -> Read:
    notes, found, error = ReadingNotes(), [], ""
    try:
        for row in rows(notes):
            found.append(row)
    except InputError as refused:
        error = str(refused)
    return found, notes.as_json(), error


def texts_of(path: Path) -> Read:
    """Text, label and origin of every row."""

    def rows(notes: ReadingNotes) -> Iterator[dict[str, Any]]:
        for row in iter_records(path, notes=notes):
            found = {"id": row.id, "text": row.text, "label": row.label}
            yield found | {"source": row.source, "line": row.line}

    return _read(rows)


def cells_of(path: Path) -> Read:
    """Every row with all its columns."""

    def rows(notes: ReadingNotes) -> Iterator[dict[str, Any]]:
        for row in iter_whole_rows(find_sources(path), ReadOptions(), notes=notes):
            # As a list: the order of the columns counts.
            found = {"cells": list(row.cells.items()), "text": row.text, "pair": row.pair}
            place = {"source": row.source, "place": row.place}
            yield found | place | {"text_column": row.text_column}

    return _read(rows)


def labelled_of(path: Path, task: Task, *, text_column: str | None = None, **columns: Any) -> Read:
    """The clean texts, pairs, labels and groups that k-fold learns from."""

    def rows(notes: ReadingNotes) -> Iterator[dict[str, Any]]:
        reading = ReadOptions(text_column=text_column)
        examples = read_examples(
            path, notes=notes, form=RowFormat(task=task, reading=reading, **columns)
        )
        yield {"labels": examples.labels, "repeats": examples.repeats, "empty": examples.empty}
        for place, text in enumerate(examples.texts):
            yield {
                "id": examples.ids[place],
                "text": text,
                "pair": examples.pairs[place] if examples.pairs else None,
                "label": examples.label_of(place),
                "group": None if examples.groups is None else int(examples.groups[place]),
            }

    return _read(rows)


def pretraining_plans(device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans of every recipe on a corpus of 1,000 texts: anew, and from a checkpoint."""
    machine = malmoi.pretrain.plan.Machine(device=device, prefers_bf16=device != "cpu", threads=2)
    lengths = np.arange(1_000) % 97 + 1
    checkpoint = malmoi.pretrain.plan.Checkpoint(
        preset="small", has_generator=True, sharing="instance", learnt_with_generator=True
    )
    # What some recipes need beside their name; --init is another start for every recipe.
    alone = {"frozen-generator", "fast-electra"}
    for recipe in recipe_names(PRETRAIN_RECIPES):
        plans: dict[str, Any] = {}
        for start in ("new", "init"):
            try:
                settings = PretrainSettings(
                    corpus=Path("corpus"),
                    recipe=recipe,
                    set=("generator.init=run",) if recipe in alone else (),
                    init="run" if start == "init" else None,
                )
                plans[start] = malmoi.pretrain.plan.plan(
                    read_pretraining(settings),
                    lengths=lengths,
                    checkpoint=checkpoint if start == "init" else None,
                    machine=machine,
                ).as_json()
            except InputError as error:
                plans[start] = {"error": str(error)}
        yield recipe, plans


def kfold_plans(device: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plans of every recipe: of each task, for a small encoder and for a wide one."""
    for recipe in recipe_names(KFOLD_RECIPES):
        plans: dict[str, Any] = {}
        for task in ("single", "multi", "pair", "pair-regression"):
            for width, parameters in ((256, 14_000_000), (768, 110_000_000)):
                found = malmoi.finetune.plan.Found(
                    data=malmoi.finetune.plan.DataPlan(
                        path="texts.csv",
                        sha256="0" * 64,
                        texts=2_000,
                        task=task,
                        labels=("가", "나"),
                    ),
                    model="encoder",
                    keep_head=False,
                    hidden_size=width,
                    longest_input=512,
                    parameters=parameters,
                    device=device,
                    threads=4,
                    memory=16 * 2**30,
                )
                try:
                    settings = KfoldSettings(data="texts.csv", recipe=recipe, task=task)
                    plan: Any = malmoi.finetune.plan.plan(read_kfold(settings), found).as_json()
                except InputError as error:
                    plan = {"error": str(error)}
                plans[f"{task} {width}"] = plan
        yield recipe, plans


class LabelledProject:
    """A project of two annotators and a reviewer in a new SQLite database."""

    def __init__(self, database: Path, labels: str) -> None:
        self._store = ProjectStore(f"sqlite:///{database}")
        self._name = "골든"
        self._owner = self._store.create(
            Person(name="관리자", is_local=True),
            NewProject(
                name=self._name,
                labels=[ProjectLabel(name=label) for label in labels.split(",")],
                guideline="# 기준",
                settings=ProjectSettings(text_order="plain", annotators_per_text=2),
            ),
        )
        for person, role in PEOPLE.items():
            set_member(self._owner, person, role)

    def read(self, texts: Path) -> None:
        """Add the texts of a file."""
        import_texts(self._owner, find_sources(texts))

    def tell(self, annotator: str, message: dict[str, Any]) -> dict[str, Any]:
        """What the app answers to a message of an annotator's card."""
        access = self._store.access(Person(name=annotator), self._name)
        given = asdict(answer(access, read_message({"scope": "", "acts": []} | message)))
        for text in given["texts"]:
            del text["offer"]  # has the moment in it
        return given

    def shown(self, text_id: int) -> dict[str, str]:
        """What the card says of the text that was on screen; of none for an unknown one."""
        try:
            with self._owner.reading() as connection:
                text = require_text(connection, self._owner.project_id, text_id)
        except InputError:
            text = ""
        return {"sha256": sha256_of(text)}

    def decide(self, reviewer: str, text_id: int, label: str, request_id: str) -> None:
        """Let a reviewer say what a text is."""
        access = self._store.access(Person(name=reviewer), self._name)
        adjudicate(access, text_id, [label], request_id=request_id, note="검수")
