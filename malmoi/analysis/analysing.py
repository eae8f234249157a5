"""A table and a model to a `Report`: `malmoi.report` in Python, and what the command calls.

Legend: N texts, K labels.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malmoi.analysis.parts import Period
from malmoi.analysis.shares import Labelling
from malmoi.errors import InputError
from malmoi.inference.inputs import text_of_cell
from malmoi.inference.learnt_texts import read_learnt, text_keys
from malmoi.inference.prediction import LabelsPrediction, Prediction
from malmoi.installed import need
from malmoi.labels.label_names import normal_label
from malmoi.model_folders import read_json
from malmoi.text.cleaning.cleaner import clean_batch
from malmoi.text.reading.run_predictions import read_predictions

if TYPE_CHECKING:
    import pandas as pd

    from malmoi.analysis.report import Report
    from malmoi.inference.classifier import Classifier

INSTALL = "pip install 'malmoi[report]' (in a clone: make)"
PACKAGES = ("pandas", "sklearn", "scipy", "jinja2", "babel", "matplotlib", "koreanize_matplotlib")
OnBatch = Callable[[int, int], None]


def report(
    frame: "pd.DataFrame",
    text: str,
    *,
    model: "str | Path | Classifier | None" = None,
    label: str | None = None,
    by: str | Sequence[str] = (),
    time: str | None = None,
    period: Period | None = None,
    engine: str = "auto",
    progress: OnBatch | None = None,
) -> "Report":
    """Say what texts are about: shares of labels with valid intervals, words and themes.

    Args:
        frame: N rows; it is not changed. Rows without a text are left out.
        text: name of the column of texts.
        model: gives the labels: a classifier, its name, folder or Hub id. Without one there are
            themes, and the shares of the labels of people.
        label: name of the column with labels of people, of texts drawn by chance; empty where
            nobody has read a text. Of several labels a cell is a JSON list.
        by: name of a column, or several, whose values are compared.
        time: name of a column of dates.
        period: `week` or `month`; chosen by the span where it is left out.
        engine: what computes, as of `Classifier.load`.
        progress: called with (texts done, texts in all) while the model labels.

    Returns:
        What was found: tables (`shares`, `changes`, `words`, `themes`), and `save`.

    Raises:
        InputError: a column is missing, `time` holds no dates, no row has a text, a label column
            has no label, or the model gives no labels of single texts.
    """
    need("malmoi report", *PACKAGES, instead=INSTALL)
    from malmoi.analysis.report import Report
    from malmoi.inference.vectors.sentence_encoder import find_sentence_encoder

    by = [by] if isinstance(by, str) else list(by)
    _check_columns(frame, text, label, by, time)
    filled, texts, clean = _texts_in(frame[text].tolist(), text)
    cells = frame.iloc[filled].reset_index(drop=True)
    given = _labels_of_people(cells, label)
    classifier = _classifier(model, engine)
    predicted = [] if classifier is None else classifier.predict(texts, progress=progress)
    labels, labelling = labelled(given, predicted, [] if classifier is None else classifier.labels)
    learnt = 0
    if classifier is not None and classifier.folder is not None:
        labelling, learnt = unlearnt(labelling, clean, labels, classifier.folder)
    found = Report(
        originals=texts,
        cells=cells,
        labels=labels,
        labelling=labelling,
        confidence=np.array([one.confidence for one in predicted] or [np.nan] * len(texts)),
        by=by,
        time=time,
        period=period,
        model=None if classifier is None else classifier.name,
        encoder=find_sentence_encoder(),
        learnt=learnt,
        blank=len(frame) - len(texts),
    )
    # Bad columns are told at once, not when somebody looks at the table.
    _ = found.parts
    return found


def labelled(
    given: Sequence[tuple[str, ...]], predicted: Sequence[Prediction], known: Sequence[str]
) -> tuple[list[str], Labelling]:
    """Labels of people and of a model in one spelling.

    Args:
        given: N, empty where nobody has read the text.
        predicted: N, or none without a model.
        known: labels of the model.

    Returns:
        K names, the model's first; and what was said of the texts.
    """
    place: dict[str, int] = {}
    names: list[str] = []
    for name in (*known, *(one for row in given for one in row)):
        if normal_label(name) not in place:
            place[normal_label(name)] = len(names)
            names.append(name)
    said = np.zeros((len(given), len(names)), dtype=bool)
    by_people = np.zeros_like(said)
    for row, one in enumerate(predicted):
        labels = one.labels if isinstance(one, LabelsPrediction) else (one.label,)
        said[row, [place[normal_label(label)] for label in labels]] = True
    for row, own in enumerate(given):
        by_people[row, [place[normal_label(label)] for label in own]] = True
    return names, Labelling(said=said, given=by_people, drawn=np.asarray(by_people.any(axis=1)))


def unlearnt(
    labelling: Labelling, clean: Sequence[str], labels: Sequence[str], folder: Path
) -> tuple[Labelling, int]:
    """Let the model say of texts that it has learnt what it said when it had not.

    Else it would look better than it is. Those predictions stand beside the run of k-fold
    ("cross-prediction-powered inference", Zrnic & Candès 2024).

    Args:
        labelling: of N texts.
        clean: the texts, clean.
        labels: K.
        folder: of the model.

    Returns:
        The labelling with the confusion of the model; and how many texts that people read do not
        count: the model has learnt them, and nobody knows what it said before.
    """
    labelling = replace(labelling, confusion=confusion_of(folder, labels))
    keys = read_learnt(folder)
    if keys is None:
        return labelling, 0
    before = _out_of_fold(folder.parent / "predictions.csv")
    # Those that were not drawn, too: those that were say how often the model errs on them.
    told = np.array([text in before for text in clean], dtype=bool)
    rows = np.flatnonzero(labelling.drawn | told)
    rows = rows[np.isin(text_keys([clean[row] for row in rows.tolist()]), keys)]
    place = {normal_label(label): number for number, label in enumerate(labels)}
    said, drawn = labelling.said.copy(), labelling.drawn.copy()
    for row in rows.tolist():
        if not told[row]:
            drawn[row] = False
            continue
        said[row] = False
        said[row, [place[one] for one in before[clean[row]] if one in place]] = True
    return replace(labelling, said=said, drawn=drawn), int((labelling.drawn & ~drawn).sum())


def _out_of_fold(path: Path) -> Mapping[str, tuple[str, ...]]:
    """The labels that models gave to texts which they had not learnt, by text."""
    try:
        return {row["text"]: _labels_in(row["predicted"]) for row in read_predictions(path)}
    except InputError:  # the file beside a model may be any other
        return {}


def confusion_of(folder: Path, labels: Sequence[str]) -> np.ndarray | None:
    """Texts by given (row) and predicted label, float [K, K]; None where the run does not say."""
    for place in (folder, folder.parent):
        pooled = read_json(place / "report.json").get("pooled") or {}
        names = [normal_label(one) for one in pooled.get("labels") or ()]
        if pooled.get("confusion") and set(map(normal_label, labels)) == set(names):
            order = [names.index(normal_label(label)) for label in labels]
            return np.array(pooled["confusion"], dtype=float)[np.ix_(order, order)]
    return None


def _check_columns(
    frame: Any, text: str, label: str | None, by: Sequence[str], time: str | None
) -> None:
    if not hasattr(frame, "columns"):
        raise InputError(
            "expected a table with a column {column}, found {kind}; give a pandas DataFrame",
            column=text,
            kind=type(frame).__name__,
        )
    for column in filter(None, (text, label, *by, time)):
        if (count := list(frame.columns).count(column)) != 1:
            raise InputError(
                "expected one column {column}, found {count} among {columns:, }; name one of these",
                column=column,
                count=count,
                columns=list(map(str, frame.columns)),
            )


def _texts_in(cells: Sequence[Any], column: str) -> tuple[list[int], list[str], list[str]]:
    """The rows that have a text, their texts, and these clean."""
    written = [str(text_of_cell(cell)) for cell in cells]
    clean = clean_batch(written).texts
    filled = [place for place, one in enumerate(clean) if one]
    if not filled:
        raise InputError(
            "expected texts in the column {column}, found none; name another column", column=column
        )
    return filled, [written[place] for place in filled], [clean[place] for place in filled]


def _labels_of_people(cells: "pd.DataFrame", column: str | None) -> list[tuple[str, ...]]:
    if column is None:
        return [()] * len(cells)
    given = list(map(_labels_in, cells[column].tolist()))
    if not any(given):
        raise InputError(
            "expected labels in the column {column}, found only empty cells; name another column, "
            "or none",
            column=column,
        )
    return given


def _classifier(model: Any, engine: str) -> "Classifier | None":
    if model is None:
        return None
    from malmoi.inference.classifier import Classifier

    classifier = model if isinstance(model, Classifier) else Classifier.load(model, engine)
    if classifier.gives == "value" or classifier.reads_pairs:
        raise InputError(
            "expected a model that gives labels to single texts, found {name}; give another one",
            name=classifier.name,
        )
    return classifier


def _labels_in(cell: object) -> tuple[str, ...]:
    """The labels of a cell, a name or a JSON list; none of an empty one."""
    written = normal_label(str(text_of_cell(cell)))
    if written.startswith("["):
        try:
            return tuple(str(one) for one in json.loads(written))
        except ValueError:
            pass
    return (written,) if written else ()
