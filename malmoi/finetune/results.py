"""What `malmoi.cross_validate` and `malmoi.evaluate` give: tables, and pages for a notebook."""

import json
from abc import ABC, abstractmethod
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from malmoi.errors import InputError
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.fold_results import CrossValidation
from malmoi.finetune.evaluation.scores import summarize
from malmoi.finetune.report.files import pooled_scores, shown_prediction
from malmoi.finetune.runner import FinishedRun
from malmoi.finetune.scoring import Evaluation, evaluation_page
from malmoi.inference.classifier import Classifier
from malmoi.inference.tasks import has_values
from malmoi.text.reading.frames import TABLE
from malmoi.text.reading.sources import Source


class ScoredTexts(ABC):
    """Labelled texts with what models said that had not learnt them.

    Args:
        result: what models said.
        table: that the texts were read from; None of a file.
    """

    def __init__(self, examples: Examples, result: CrossValidation, table: Source | None) -> None:
        self._examples, self._result, self._table = examples, result, table

    @property
    @abstractmethod
    def scores(self) -> pd.DataFrame:
        """A row for each score, with its 95% interval."""

    @property
    def per_label(self) -> pd.DataFrame:
        """F1, precision, recall and number of texts of each label."""
        found = pooled_scores(self._result).get("labels", {})
        return pd.DataFrame.from_dict(found, orient="index").rename(columns={"support": "texts"})

    @property
    def confusion(self) -> pd.DataFrame:
        """Texts by their label (row) and the predicted one (column).

        Raises:
            InputError: texts have several labels, or values.
        """
        scores = pooled_scores(self._result)
        if "confusion" not in scores:
            raise InputError("expected one label a text, found several or values; see predictions")
        labels = self._result.labels
        return pd.DataFrame(
            scores["confusion"],
            index=pd.Index(labels, name="label"),
            columns=pd.Index(labels, name="predicted"),
        )

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Every text with its label and what was predicted by a model that had not learnt it.

        The rows have the index of the table that was given, or its ids; of several seeds first all
        of the one, then of the other.
        """
        return pd.concat([self._of_seed(seed) for seed in self._result.seeds])

    def _of_seed(self, seed: int) -> pd.DataFrame:
        examples, result = self._examples, self._result
        places, predicted = range(len(examples.texts)), result.predicted(seed)
        columns: dict[str, Any] = {"text": examples.texts}
        if examples.pairs is not None:
            columns["pair"] = examples.pairs
        if has_values(examples.task):
            columns |= {"label": examples.values, "predicted": predicted}
        else:
            columns["label"] = [examples.label_of(place) for place in places]
            columns["predicted"] = [shown_prediction(examples, predicted[p]) for p in places]
            chances = result.probabilities(seed)
            columns["confidence"] = chances.max(axis=1)
            columns |= {f"prob_{name}": chances[:, n] for n, name in enumerate(result.labels)}
        if result.folds > 1:
            columns |= {"fold": result.fold_of(seed), "seed": seed}
        return pd.DataFrame(columns, index=self._index)

    @cached_property
    def _index(self) -> Any:
        ids, prefix = self._examples.ids, f"{TABLE}:"
        if self._table is None or not all(one.startswith(prefix) for one in ids):
            return pd.Index(ids, name="id")
        return self._table.frame.index[[int(one.removeprefix(prefix)) - 1 for one in ids]]

    def mistakes(self, most: int = 20) -> pd.DataFrame:
        """The predictions that are wrong, the surest first; of values the furthest off."""
        found = self.predictions
        if has_values(self._examples.task):
            error = (found["predicted"] - found["label"]).abs()
            order = np.argsort(-error.to_numpy(), kind="stable")
            return found.assign(error=error).iloc[order[:most]]
        wrong = found[found["label"] != found["predicted"]]
        return wrong.sort_values("confidence", ascending=False, kind="stable").head(most)

    def __repr__(self) -> str:
        """What it is, and the scores."""
        return f"{self._title}\n{self.scores.round(4).to_string()}"

    @property
    def _title(self) -> str:
        return f"{len(self._examples.texts):,} {self._examples.what} of {self._examples.path}"

    def _repr_html_(self) -> str:
        """Scores, and the report page, which has the pictures."""
        scores: Any = self.scores.round(4)
        shown = f"<p>{escape(self._title)}</p>{scores._repr_html_()}"
        if not (page := self._page()):
            return shown
        # A page of its own: its style is not the notebook's.
        style = "width: 100%; height: 36rem; border: 1px solid #8884"
        return f'{shown}<iframe srcdoc="{escape(page)}" style="{style}"></iframe>'

    @abstractmethod
    def _page(self) -> str:
        """The report as HTML; "" where there is none."""


class Evaluated(ScoredTexts):
    """A classifier on texts that it has not learnt.

    Attributes:
        classifier: that was asked.
    """

    def __init__(self, found: Evaluation, table: Source | None) -> None:
        super().__init__(found.examples, found.result, table)
        self.classifier, self._found = found.classifier, found

    @property
    def scores(self) -> pd.DataFrame:
        """A row for each score, with its 95% interval (of texts drawn again)."""
        rows = {
            name: (score, *self._found.intervals.get(name, (np.nan, np.nan)))
            for name, score in self._found.scores.items()
            if isinstance(score, float)
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=["score", "low", "high"])

    def _page(self) -> str:
        return evaluation_page(self._found)


class CrossValidated(ScoredTexts):
    """A run of k-fold, and the classifier that it made of all texts.

    Attributes:
        folder: of the run, with `report.html`, `report.json`, `predictions.csv` and the classifier.
        report: what `report.json` says.
        test: the classifier on the test, None where there is none.
    """

    def __init__(self, run: FinishedRun, table: Source | None, test: Source | None) -> None:
        super().__init__(run.measured.examples, run.measured.result, table)
        self.folder: Path = run.folder.absolute()
        self.report: dict[str, Any] = json.loads((run.folder / "report.json").read_text("utf-8"))
        self.test = None if run.tested is None else Evaluated(run.tested, test or table)

    @cached_property
    def classifier(self) -> Classifier:
        """What was trained on all texts."""
        return Classifier.load(self.folder / "model")

    @property
    def scores(self) -> pd.DataFrame:
        """A row for each score: mean over the folds, deviation, and 95% interval of the mean."""
        folds = self._result.results
        rows = {}
        for name, score in folds[0].scores.items():
            if isinstance(score, float):
                values = [fold.scores.get(name, np.nan) for fold in folds]
                found = summarize(values, self._result.folds, lowest=-1.0)
                # A mean error has no highest value, at which an interval would end.
                interval = (np.nan, np.nan) if "mean" in name else (found.low, found.high)
                rows[name] = (found.mean, found.sd, *interval)
        return pd.DataFrame.from_dict(rows, orient="index", columns=["score", "sd", "low", "high"])

    @property
    def _title(self) -> str:
        return f"{self._result.folds} folds of {super()._title}, classifier in {self.folder}"

    def _page(self) -> str:
        page = self.folder / "report.html"
        return page.read_text("utf-8") if page.exists() else ""
