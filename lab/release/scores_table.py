"""The tables of the cards: what the benchmarks measured of a released encoder."""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from lab.release.check import read_json
from malmoi.errors import InputError
from malmoi.files import file_sha256

ROOT = Path(__file__).parents[2]
QUALITY = ROOT / "lab" / "benchmarks" / "results" / "quality.json"
# Beside it: what other vocabularies do to spoilt texts.
VOCABULARIES = "quality_vocabularies.json"
TASKS = {
    "nsmc": "NSMC, rebuilt split: film reviews, 2 classes",
    "three": "film reviews, 3 classes from the rating, learnt from 180,000",
    "three-all": "film reviews, 3 classes from the rating, learnt from all 615,160",
    "hate": "Korean hate speech (its dev file)",
    "kote": "KOTE, 44 emotions (trained on its val file)",
    "korsts": "KorSTS, similarity of sentences",
    "questions": "question pairs",
    "memos": "this project's memos, 5 folds",
    "written": "this project's written reviews, 5 folds",
}
METRICS = {"macro_f1": "macro F1", "accuracy": "accuracy", "spearman": "Spearman"}
# The metric of a task is accuracy or Spearman where these say so.
METRIC_OF = {"nsmc": "accuracy", "questions": "accuracy", "korsts": "spearman"}
# Texts that may change, and their tasks: figures of others than today's do not count.
OWN_TEXTS = {
    "memos": ROOT / "corpora" / "memos" / "memos.csv",
    "written": ROOT / "corpora" / "reviews" / "reviews.csv",
}
# What lab/benchmarks/quality/score.py calls it.
LINEAR = "characters, linear SVM"
# Figures that others published, in percent: parameters, then as PUBLISHED_TASKS. Of README.md of
# tunib-ai/tunib-electra, of DistilKoBERT that of Beomi/KcELECTRA.
PUBLISHED_TASKS = {
    "nsmc": "NSMC, accuracy",
    "korsts": "KorSTS, Spearman",
    "questions": "question pairs, accuracy",
    "hate": "hate speech (dev), F1",
}
PUBLISHED = {
    "TUNiB-Electra-ko-small": ("14M", 89.56, 78.76, 94.98, 64.50),
    "KoELECTRA-small-v3": ("14M", 89.36, 80.79, 94.85, 63.07),
    "DistilKoBERT": (None, 88.41, 73.21, 92.48, None),
    "KoBERT": ("90M", 89.63, 79.64, 93.93, 66.21),
    "KoELECTRA-base-v3": ("110M", 90.63, 85.53, 95.25, 67.61),
    "KcELECTRA-base": ("124M", 91.71, 82.65, 95.78, 74.49),
}


def linear_on(task: str) -> float | None:
    """Macro F1 of the linear classifier in five folds, as a fraction; None if not measured."""
    found = _scores_of(_rows(LINEAR), task)
    return statistics.mean(found) / 100 if found else None


def weights_sha256(encoder: Path) -> str:
    """SHA-256 of the weights in an encoder's folder.

    Raises:
        InputError: there are none.
    """
    path = encoder / "model.safetensors"
    if not path.is_file():
        raise InputError(f"expected an encoder's weights in {path}, found none; name its folder")
    return file_sha256(path)


def _rows(encoder: str, part: str = "test", **identity: str) -> list[dict[str, Any]]:
    """The rows of lab/benchmarks/quality/score.py about an encoder of that name.

    Args:
        identity: its `weights_sha256`, or of random weights the `shape`; nothing of linear models.
    """
    if not QUALITY.is_file():
        return []
    key = {"encoder": encoder, "part": part}
    texts = {task: file_sha256(path) for task, path in OWN_TEXTS.items()}
    return [
        run
        for run in read_json(QUALITY)["runs"]
        if key.items() <= run.items()
        and all(run.get(name) == identity.get(name) for name in ("weights_sha256", "shape"))
        and run.get("texts_sha256") == texts.get(run["task"])
    ]


def _scores_of(rows: list[dict[str, Any]], task: str) -> list[float]:
    metric = METRIC_OF.get(task, "macro_f1")
    return [row[metric] for row in rows if row["task"] == task]


def quality_tables(encoder: Path, size: str) -> str:
    """What `lab.benchmarks.quality.score` found of this encoder, random weights and linear models.

    Args:
        encoder: its folder; rows of other weights that lay in a folder of that name do not count.
        size: how many parameters it has.
    """
    from malmoi.finetune.training.encoders import shape_of

    weights = {"weights_sha256": weights_sha256(encoder)}
    shape = {"shape": shape_of(encoder)}
    names = (encoder.name, f"{encoder.name}, random weights")
    own, random = _rows(names[0], **weights), _rows(names[1], **shape)
    lines = []
    for task, about in TASKS.items():
        cells = [_cell(_scores_of(rows, task)) for rows in (own, random, _rows(LINEAR))]
        if cells[0]:
            lines.append((about, METRICS[METRIC_OF.get(task, "macro_f1")], *cells))
    if not lines:
        return "Not measured yet."
    head = ("task", "score (seeds)", "this encoder", "random weights", LINEAR)
    first = [
        _rows(name, "test, first look", **identity)
        for name, identity in zip(names, (weights, shape), strict=True)
    ]
    tables = [
        table(head, lines),
        _fine_tuning(own, random),
        _first_looks(*first),
        _spoilt(own),
        _published(own, size),
    ]
    return "\n\n".join(one for one in tables if one)


def _fine_tuning(own: list[dict[str, Any]], random: list[dict[str, Any]]) -> str:
    """Epochs and learning rates behind the two columns: where they differ, so may the scores."""
    rows = [
        (about, _settings_of(own, task), _settings_of(random, task))
        for task, about in TASKS.items()
    ]
    head = ("fine-tuned for", "this encoder", "random weights")
    return table(head, measured) if (measured := [row for row in rows if row[1]]) else ""


def _first_looks(own: list[dict[str, Any]], random: list[dict[str, Any]]) -> str:
    """Test files that were scored a second time, after a wider choice: what the first look gave."""

    def cell(rows: list[dict[str, Any]], task: str) -> str:
        scores = _scores_of(rows, task)
        return f"{_cell(scores)}; {_settings_of(rows, task)}" if scores else ""

    rows = [(about, cell(own, task), cell(random, task)) for task, about in TASKS.items()]
    head = ("scored before, with other settings", "this encoder", "random weights")
    return table(head, measured) if (measured := [row for row in rows if any(row[1:])]) else ""


def _settings_of(rows: list[dict[str, Any]], task: str) -> str:
    found = {
        f"epochs: {row['epochs']}, rate: {row['learning_rate']:g}"
        for row in rows
        if row["task"] == task and "epochs" in row
    }
    return "; ".join(sorted(found))


def _cell(scores: list[float]) -> str:
    """Mean, spread and number of seeds; empty if not measured."""
    if not scores:
        return ""
    spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{statistics.mean(scores):.2f}{spread} ({len(scores)})"


def fraction(score: float | None) -> str:
    """Four places; empty if not measured."""
    return "" if score is None else f"{score:.4f}"


def _spoilt(rows: list[dict[str, Any]]) -> str:
    """What spoiling NSMC's test texts costs, here and with other vocabularies, in points."""
    spoilt = [row["spoilt"] for row in rows if row["task"] == "nsmc" and "spoilt" in row]
    if not spoilt:
        return ""
    lines = {"this encoder": spoilt}
    others = QUALITY.with_name(VOCABULARIES)
    if others.is_file():
        lines |= {run["encoder"]: [run["spoilt"]] for run in read_json(others)["runs"]}
    rows_of_table = []
    for name, found in lines.items():
        means = {kind: statistics.mean(one[kind] for one in found) for kind in spoilt[0]}
        before = means.pop("as written")
        # Adding 0 makes 0 of the -0 that rounding may leave.
        changes = [f"{round(after - before, 2) + 0.0:.2f}" for after in means.values()]
        rows_of_table.append((f"{name} ({len(found)})", f"{before:.2f}", *changes))
    head = ("spoilt texts, NSMC (seeds)", *spoilt[0])
    return table(head, rows_of_table)


def _published(rows: list[dict[str, Any]], size: str) -> str:
    """This encoder beside published ones, where one of their tasks was measured."""
    own = [_scores_of(rows, task) for task in PUBLISHED_TASKS]
    if not any(own):
        return ""
    known = {"this encoder": (size, *(statistics.mean(one) if one else None for one in own))}
    lines = [
        (
            name,
            str(parameters or ""),
            *("" if score is None else f"{score:.2f}" for score in scores),
        )
        for name, (parameters, *scores) in (known | PUBLISHED).items()
    ]
    return table(("published", "parameters", *PUBLISHED_TASKS.values()), lines)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
