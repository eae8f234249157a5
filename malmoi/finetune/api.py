"""`malmoi.cross_validate` and `malmoi.evaluate`: what the commands do, on tables in memory."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malmoi.installed import INSTALL_TORCH, need
from malmoi.text.reading.sources import Source

if TYPE_CHECKING:
    from malmoi.finetune.results import CrossValidated, Evaluated
    from malmoi.inference.classifier import Classifier
    from malmoi.inference.tasks import Task

# Begins messages about the mapping of this name.
_SETTINGS = "settings"


def cross_validate(
    data: object,
    text: str | None = None,
    label: str | Sequence[str] | None = None,
    *,
    pair: str | None = None,
    task: "Task | None" = None,
    test: object = None,
    model: str | Path | None = None,
    quick: bool = False,
    folds: int = 5,
    seed: int = 42,
    settings: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    progress: bool = True,
) -> "CrossValidated":
    """Measure a classifier by k-fold, and train it on all texts: `malmoi kfold` in Python.

    The same texts, settings and seed give the same classifier as the command. A run that was
    stopped goes on from its finished folds when the same call is made again.

    Args:
        data: a table (DataFrame, Arrow, Polars, columns by name), or what `--data` takes: a file, a
            folder, the app's label database.
        text: column of the texts; found by its name and cells when not given.
        label: column of the labels, or several columns of 0 and 1, each a label.
        pair: column of the second texts.
        task: see `--task`; by default `single`, with `pair` `pair`, of several label columns
            `multi`.
        test: labelled texts that are in no fold: they score the finished classifier.
        model: encoder: a name, directory or Hub id; by default as the command.
        quick: seconds instead of minutes: fit the linear model alone, and train no encoder.
        folds: parts; each is predicted by a model trained on the others.
        seed: of folds, new weights, dropout and the order of texts.
        settings: everything else by its name: keys of recipes such as `training.epochs`, and flags
            of the command such as `seeds`, `rare` or `recipe`.
        output: folder for the run; by default in runs/finetune/.
        progress: whether to print what the command prints, with a bar.

    Returns:
        Scores, confusions and predictions as tables, and the classifier.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    labels = [label] if isinstance(label, str) else list(label or ())
    if task is None:
        task = "pair" if pair is not None else "multi" if len(labels) > 1 else "single"
    flags = {
        "text_column": text,
        "label_column": ",".join(labels) or None,
        "pair_column": pair,
        "task": task,
        "model": model,
        "quick": quick,
        "folds": folds,
        "seed": seed,
        "output": output,
    }
    with _said(progress):
        return _run(data, test, [text, pair, *labels], flags, settings or {})


def _run(
    data: object,
    test: object,
    columns: list[str | None],
    flags: dict[str, Any],
    settings: Mapping[str, Any],
) -> "CrossValidated":
    """Do what the command does.

    Args:
        data: a table or a path.
        test: the same, or None.
        columns: that the tables must have.
        flags: of the command; they hold before what `settings` says.
        settings: further flags, and keys, whose names have a point.
    """
    _need_training()
    from malmoi.finetune.kfold import run
    from malmoi.finetune.results import CrossValidated
    from malmoi.finetune.run_config import read_config
    from malmoi.finetune.settings import KfoldSettings
    from malmoi.settings import made_of

    places = {"data": _place(data, *columns)}
    if test is not None:
        places["test"] = _place(test, *columns)
    paths = {name: place for name, place in places.items() if isinstance(place, str)}
    tables = [_table(places.get(name)) for name in ("data", "test")]
    keys = tuple(
        f"{key}={'none' if value is None else json.dumps(value, ensure_ascii=False, default=str)}"
        for key, value in settings.items()
        if "." in key
    )
    others = {name: value for name, value in settings.items() if "." not in name}
    given = made_of(KfoldSettings, others | flags | paths | {"set": keys}, _SETTINGS)
    return CrossValidated(run(read_config(given, *tables)), *tables)


def evaluate(
    model: "str | Path | Classifier",
    data: object,
    text: str | None = None,
    label: str | None = None,
    *,
    pair: str | None = None,
    settings: Mapping[str, Any] | None = None,
    output: str | Path | None = None,
    progress: bool = True,
) -> "Evaluated":
    """Score a classifier on labelled texts: `malmoi evaluate` in Python.

    Texts that it has learnt are left out, where it says which they are.

    Args:
        model: a classifier, or its name, folder or Hub id.
        data: a table, file or folder, as `cross_validate`.
        text: column of the texts.
        label: column of the labels or values.
        pair: column of the second texts.
        settings: flags of the command by their names: `label_separator`, `skip_unlabelled`,
            `engine`.
        output: folder to write `report.html`, `report.json` and `predictions.csv` to; by default
            nothing is written.
        progress: whether to print what the command prints.

    Returns:
        Scores, confusions, predictions and mistakes as tables.

    Raises:
        InputError: what was given cannot be used.
    """
    _need_training()
    from malmoi.finetune.evaluate import EvaluationSettings, asked
    from malmoi.finetune.report.files import check_free
    from malmoi.finetune.results import Evaluated
    from malmoi.inference.classifier import Classifier
    from malmoi.settings import made_of
    from malmoi.text.reading.options import ReadOptions

    place = _place(data, text, pair, label)
    named = model.name if isinstance(model, Classifier) else str(model)
    flags = {"model": named, "data": Path(str(place)), "label_column": label, "pair_column": pair}
    given = made_of(EvaluationSettings, dict(settings or {}) | flags, _SETTINGS)
    given.reading = ReadOptions(text_column=text)
    folder = None if output is None else Path(output)
    if folder is not None:
        check_free(folder)
    with _said(progress):
        if not isinstance(model, Classifier):
            model = Classifier.load(model, given.engine)
        where = place if isinstance(place, Source) else Path(place)
        return Evaluated(asked(model, where, given, folder), _table(place))


def _need_training() -> None:
    packages = ("torch", "transformers", "pandas", "sklearn", "scipy")
    need("training and scoring", *packages, instead=INSTALL_TORCH)


def _place(data: object, *named: str | None) -> str | Source:
    """A path as it is, anything else as a table with these columns."""
    if isinstance(data, str | Path):
        return str(data)
    from malmoi.text.reading.frames import source_of_table

    return source_of_table(data, [name for name in named if name is not None])


def _table(place: object) -> Source | None:
    return place if isinstance(place, Source) else None


@contextmanager
def _said(progress: bool) -> Iterator[None]:
    """Let what is printed through, or not."""
    if progress:
        yield
    else:
        with redirect_stdout(io.StringIO()):
            yield
