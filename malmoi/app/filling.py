"""나머지 채우기: the texts that nobody has labelled, labelled by the model of the project."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from malmoi.app import learning
from malmoi.app.downloads import XLSX_MIME
from malmoi.app.explanation import explain
from malmoi.app.intervals import share_interval
from malmoi.app.job_bar import draw_job
from malmoi.app.jobs import Job, Key, jobs
from malmoi.app.language import say
from malmoi.app.plain_text import escaped, file_stem
from malmoi.app.projects.uploads import UploadFolder
from malmoi.app.training_job import newest_training
from malmoi.app.visit import OpenProject
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.project_numbers import last_change
from malmoi.labels.review import progress
from malmoi.labels.scores import drawn_by_chance, score_versions
from malmoi.labels.training_texts import labelled_texts
from malmoi.text.reading.run_predictions import read_predictions

_QUICK_SECONDS = 1.0
# Fewer say hardly more than that it is somewhere between all wrong and all right.
_FEWEST_DRAWN = 5
LIVE = "live"


@dataclass(frozen=True, kw_only=True)
class FilledFiles:
    """What was written.

    Attributes:
        folder: holds the files.
        numbers: of `malmoi.labels.filled_export.Filled`.
        change: the last one of labels and texts before that.
    """

    folder: UploadFolder
    numbers: dict[str, Any]
    change: tuple[int, int]


def draw_filling(open_project: OpenProject) -> None:
    """One sentence on how right the model is, the button, and the files; nothing before it learnt.

    Raises:
        InputError: the database cannot be used.
    """
    access = open_project.access
    if not open_project.allows("reviewer"):
        return
    trained = newest_training(access)
    run = None if trained is None else Path(trained.output)
    last = score_versions(access, newest=1)
    if run is None and not last:
        return
    with st.container(border=True, key="filling"):
        if run is not None:
            texts, right = _drawn_of_run(access, run)
            st.caption(say("Model: {name}", name=escaped(run.name)))
        else:
            texts, right = last[0].quality.drawn_texts, last[0].quality.drawn_right
        st.markdown(f"**{_how_right(texts, right)}**")
        _draw_job(open_project, LIVE if run is None else str(run / "model"))


def _how_right(texts: int, right: int) -> str:
    if texts < _FEWEST_DRAWN:
        return say(
            "How right the labels of the model are cannot be said yet: only {texts} of the "
            "labelled texts were drawn by chance.",
            texts=texts,
        )
    low, high = (round(100 * end) for end in share_interval(right / texts, texts))
    return say(
        "Of 100 labels of the model, about {share} are right ({low}~{high}).",
        share=round(100 * right / texts),
        low=low,
        high=high,
    )


@st.cache_data(max_entries=20, show_spinner=False)
def _said_in_folds(path: str, changed: float) -> dict[str, str]:
    """What a model said of each text before it had learnt it."""
    return {row["text"]: row["predicted"] for row in read_predictions(Path(path))}


def _drawn_of_run(access: ProjectAccess, run: Path) -> tuple[int, int]:
    """Of texts that were drawn by chance and learnt: how many, and how many were found right."""
    path = run / "predictions.csv"
    if not path.is_file():
        return 0, 0
    said = _said_in_folds(str(path), path.stat().st_mtime)
    drawn = drawn_by_chance(access)
    met = [
        said[text.text] == text.labels[0]
        for text in labelled_texts(access)
        if text.text_id in drawn and text.text in said and len(text.labels) == 1
    ]
    return len(met), sum(met)


def _draw_job(open_project: OpenProject, model: str) -> None:
    access = open_project.access
    key: Key = ("fill", access.project_id, str(access.engine.url))
    job = jobs().of(key)
    if job is not None and job.is_on:
        draw_job(key, say("Labelling the other texts"), stop=say("Stop"))
        return
    now = last_change(access)
    change = (now.annotation, now.audit)
    filled = None if job is None else job.result
    if job is not None and job.error is not None:
        explain(say("The other texts could not be labelled."), job.error)
    if isinstance(filled, FilledFiles) and filled.change == change:
        _offer(filled, open_project.project.name)
        return
    if st.button(
        say("Label the rest"),
        type="primary",
        icon=":material/format_color_fill:",
        help=say(
            "A workbook and a CSV with every column of your file, and behind them the label, whose "
            "it is, how sure, and where a person has to look."
        ),
        key="fill",
    ):
        folder = UploadFolder()

        def work(job: Job) -> FilledFiles:
            files = [folder.path / f"filled{ending}" for ending in (".xlsx", ".csv")]
            numbers = learning.fill(job, access, model, files, progress(access).texts)
            return FilledFiles(folder=folder, numbers=numbers, change=change)

        try:
            jobs().start(key, work, person=access.person.name).wait(_QUICK_SECONDS)
        except InputError as error:
            explain(say("The other texts could not be labelled."), error)
        st.rerun()


def _offer(filled: FilledFiles, name: str) -> None:
    numbers = filled.numbers
    st.caption(
        say(
            "{rows:row}: {people:,} labelled by people, {model:,} by the model, {unsure:,} of them "
            "to look at.",
            rows=numbers["rows"],
            people=numbers["by_people"],
            model=numbers["by_model"],
            unsure=numbers["unsure"],
        )
    )
    with st.container(horizontal=True):
        for title, ending, mime in (("Excel", ".xlsx", XLSX_MIME), ("CSV", ".csv", "text/csv")):
            st.download_button(
                say("Download {name}", name=title),
                (filled.folder.path / f"filled{ending}").read_bytes,
                # Named by what is in it: no two files are called alike.
                f"{file_stem(name)}-{numbers['by_people']}{ending}",
                mime,
                on_click="ignore",
                icon=":material/download:",
                type="primary" if ending == ".xlsx" else "secondary",
                key=f"filled{ending}",
            )
