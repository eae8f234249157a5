"""The cards of the released checkpoints, filled in from their own records and measured results."""

import json
import statistics
from pathlib import Path
from string import Template
from typing import Any

from corpora.errors import InputError

# Rated reviews of e9t/nsmc's raw release, without those that the test files were drawn from.
REVIEWS = "reviews_rated.tsv.gz"
# Lowest and highest rating of a label.
RATINGS = {"부정": (1, 4), "중립": (5, 8), "긍정": (9, 10)}
TEMPLATES = Path(__file__).parent / "card_templates"
QUALITY = Path(__file__).parents[1] / "benchmarks" / "results" / "quality.json"
# By the beginning of a file's name.
LICENCES = {
    REVIEWS: ("film reviews (e9t/nsmc)", "CC0 1.0"),
    "ChatbotData.csv": ("everyday sentences (songys/Chatbot_data)", "MIT"),
    "petitions_": ("petitions to the government (lovit/petitions_archive)", "public record, KOGL"),
}
TASKS = {
    "nsmc": "NSMC, rebuilt split: film reviews, 2 classes",
    "three": "film reviews, 3 classes from the rating, learnt from 180,000",
    "three-all": "film reviews, 3 classes from the rating, learnt from all 615,160",
    "hate": "Korean hate speech (its dev file)",
    "kote": "KOTE, 44 emotions (trained on its val file)",
    "korsts": "KorSTS, similarity of sentences",
    "questions": "question pairs",
    "memos": "this project's memos, 5 folds",
}
METRICS = {"macro_f1": "macro F1", "accuracy": "accuracy", "spearman": "Spearman"}
# The metric of a task is accuracy or Spearman where these say so.
METRIC_OF = {"nsmc": "accuracy", "questions": "accuracy", "korsts": "spearman"}
# What benchmarks/quality.py calls it.
LINEAR = "characters, linear SVM"
# Settings of the run that the encoder's card names.
SETTINGS = ("seed", "mask_fraction", "unigram_fraction", "bag_weight")
# A laptop's two cores under load, to give the energy an order of magnitude.
WATTS = 30
STOCK = "From the released encoder; a stock `ElectraForSequenceClassification`."
# The clean corpus of which NSMC and its like are true, as run.json has it.
CORPUS_SHA256 = "3af2413203c55454cb258bc62dd9a85f1026e402af0f4fc44983f7b2f3bda8e4"
# The shares are those of the raw release's ratings 1-4 and 9-10 that are left in REVIEWS, for the
# official file is a draw from it; equal texts were counted, both sides cleaned (2026-11-22).
NSMC = """Do not score it on NSMC's official `ratings_test.txt`, nor compare such a figure: it has
read most of it. That file and the film reviews here come from one release, from which only the test
files were taken out that this project drew anew. By arithmetic, about 70% of the official file's
negative and 90% of its positive reviews (of 10 characters or more) were read in pre-training. Of
the project's own test files (NSMC, rebuilt split; three classes) no review was; 57 of 50,000 and 8
of 15,000 texts in them, such as `10점 만점에 10점!!`, equal another review once both are clean."""
NSMC_OF_REVIEWS = """By arithmetic, some of its rated reviews are in NSMC's official
`ratings_test.txt`, most of which the encoder has read: do not score it on that file, nor compare
such a figure. Of this project's own test files it has seen no review, but a few of the same short
texts."""
OTHER_NSMC = f"""Its `{REVIEWS}` was another than the project's, and nobody has looked which reviews
of NSMC's test files are in it: do not score it on any of them."""
QUALITY_NOTE = """
Every figure is `benchmarks/quality.py`'s: learning rate and epochs, where several were tried,
chosen on a part of the training file; the test file (of the memos, which have none, five folds)
scored once for each seed of fine-tuning; the encoder is one and the same."""
NSMC_NOTE = """NSMC is a rebuilt split (same recipe and sizes, another draw), so published figures
compare within about 0.15 points, and many of those were chosen on the test file. Published, for
comparison: KcELECTRA-base 91.71, KoELECTRA-base-v3 90.63, TUNiB-ko-small 89.56, KoELECTRA-small-v3
89.36, DistilKoBERT 88.60."""
ABOUT = {
    "reviews": {
        "about": f"긍정, 중립 or 부정: what a review says, the app's default. {STOCK}",
        "example": "배송은 빨랐는데 향이 너무 세요",
        "data": "film reviews with ratings "
        f"({', '.join(f'{label} {low}-{high}' for label, (low, high) in RATINGS.items())}; CC0), "
        "as many of each label, and the project's own reviews (`corpora/reviews`)",
        "limits": "A rating is no label: people give 8 with a complaint and 10 with none. The "
        "written reviews are hard on purpose (irony, mixed verdicts): on them the first "
        "release (2026-11-22) was behind a linear classifier over character n-grams trained on "
        "them alone (`docs/experiments.md`). So take its answers as a first guess and correct them "
        "in the app.",
    },
    "memos": {
        "about": f"꿈, 일기, 일정, 메모 or 오류: what somebody noted for themselves. {STOCK}",
        "example": "내일 세시 치과",
        "data": "the project's memos (`corpora/memos`)",
        "limits": "The memos were written for the project, not collected: people's own notes "
        "differ more, and the score above will not be reached on them.",
    },
}


def encoder_card(folder: Path, memos: Path) -> str:
    """The README.md of a released encoder, from its run.json, corpus.json and the results so far.

    Args:
        folder: the encoder.
        memos: the classifier of memos made from it.

    Raises:
        InputError: a record is missing, or not one of a release.
    """
    record = read_json(folder / "run.json")
    sources = _sources(folder / "corpus.json")
    try:
        network, progress = record["networks"]["discriminator"], record["progress"]
        hours = progress["seconds"] / 3600
        values = {
            "name": folder.name,
            "parameters": f"{network['parameters'] / 1e6:.1f} million",
            "layers": network["num_hidden_layers"],
            "width": network["hidden_size"],
            "entries": f"{record['vocab_size']:,}",
            "tokens": f"{progress['tokens'] / 1e6:.0f} million",
            "steps": f"{progress['step']:,}",
            "hours": f"{hours:.1f}",
            "where": _where(record, hours),
            "reviews": REVIEWS,
            "nsmc": NSMC if _is_known(record) else OTHER_NSMC,
            "sources": sources,
            "scores": quality_table(folder.name),
            "memos": f"[{memos.name}](../{memos.name}/README.md)",
            "memo_scores": _memo_scores(memos),
            **{name: f"{record['settings'][name]:g}" for name in SETTINGS},
        }
    except (KeyError, TypeError) as error:
        raise _no_record(folder / "run.json", error) from error
    return _filled("encoder", values)


def classifier_card(folder: Path, task: str, encoder: Path) -> str:
    """The README.md of a released classifier, from its report.json; `task` is a key of ABOUT.

    Raises:
        InputError: as `encoder_card`.
    """
    report = read_json(folder / "report.json")
    try:
        mean, folds = _mean_score(report), [fold["macro_f1"] for fold in report["folds"]]
        per_label = report["data"]["per_label"]
        counts = ", ".join(f"{label} {count:,}" for label, count in per_label.items())
        scores = (
            f"Macro F1 over {len(folds)} folds: {mean:.4f} "
            f"(standard deviation {statistics.stdev(folds):.4f}); texts: {counts}."
        )
        for origin, found in report.get("by_origin", {}).items():
            scores += (
                f" {origin.capitalize()} reviews alone ({found['texts']:,}): "
                f"{found['macro_f1']:.4f}."
            )
    except (KeyError, TypeError, statistics.StatisticsError) as error:
        raise _no_record(folder / "report.json", error) from error
    values = ABOUT[task] | {"name": folder.name, "encoder": encoder.name, "scores": scores}
    values["limits"] += f" {_limits_of(task, mean, encoder)}"
    return _filled("classifier", values)


def _limits_of(task: str, mean: float, encoder: Path) -> str:
    """What the records say of its limits."""
    if task == "reviews":
        known = _is_known(read_json(encoder / "run.json"))
        return " ".join((NSMC_OF_REVIEWS if known else OTHER_NSMC).split())
    linear = _linear_on_memos()
    if linear is None:
        return "No simpler classifier was measured on them."
    source = "5 folds; `benchmarks/quality.py --linear`"
    if mean < linear:
        return (
            "A linear classifier over character n-grams is better on these memos (macro F1 "
            f"{linear:.4f}, {source}): the encoder knows film reviews, not memos."
        )
    return f"A linear classifier over character n-grams has {linear:.4f} on these memos ({source})."


def _memo_scores(memos: Path) -> str:
    """The memo classifier's score in a few words, beside a linear classifier's."""
    path = memos / "report.json"
    try:
        mean = _mean_score(read_json(path))
    except (KeyError, TypeError, statistics.StatisticsError) as error:
        raise _no_record(path, error) from error
    linear = _linear_on_memos()
    if linear is None:
        return f"macro F1 {mean:.4f}"
    verdict = "below" if mean < linear else "not below"
    return (
        f"macro F1 {mean:.4f}, {verdict} the {linear:.4f} of a linear classifier over character "
        "n-grams"
    )


def _mean_score(report: dict[str, Any]) -> float:
    return statistics.mean(fold["macro_f1"] for fold in report["folds"])


def _linear_on_memos() -> float | None:
    """Macro F1 of the linear classifier on the memos, as a fraction; None if not measured."""
    found = [
        run["macro_f1"]
        for run in _test_runs()
        if (run["task"], run["encoder"]) == ("memos", LINEAR)
    ]
    return statistics.mean(found) / 100 if found else None


def _is_known(record: dict[str, Any]) -> bool:
    return record.get("corpus_sha256") == CORPUS_SHA256


def _no_record(path: Path, error: Exception) -> InputError:
    return InputError(
        f"expected the record of a release in {path}, found another ({error!r}); name the "
        "folder of a release by --output"
    )


def _test_runs() -> list[dict[str, Any]]:
    """The rows of benchmarks/quality.py about test files."""
    if not QUALITY.is_file():
        return []
    return [run for run in read_json(QUALITY)["runs"] if run["part"] == "test"]


def quality_table(name: str) -> str:
    """What benchmarks/quality.py found of this encoder, of random weights and of linear models."""
    runs = _test_runs()
    lines = {}
    for task, about in TASKS.items():
        metric = METRIC_OF.get(task, "macro_f1")
        cells = []
        for encoder in (name, f"{name}, random weights", LINEAR):
            found = [r[metric] for r in runs if r["task"] == task and r["encoder"] == encoder]
            spread = f" ± {statistics.stdev(found):.2f}" if len(found) > 1 else ""
            cells.append(f"{statistics.mean(found):.2f}{spread} ({len(found)})" if found else "")
        if cells[0]:
            lines[task] = f"| {about} | {METRICS[metric]} | {' | '.join(cells)} |"
    if not lines:
        return "Not measured yet."
    head = "| task | score (seeds) | this encoder | random weights | characters, linear SVM |"
    table = "\n".join([head, "| --- | --- | --- | --- | --- |", *lines.values(), QUALITY_NOTE])
    return f"{table} {NSMC_NOTE}" if "nsmc" in lines else table


def _where(record: dict[str, Any], hours: float) -> str:
    if record["device"] != "cpu":
        return f"one {record['device']}"
    energy = f"{hours * WATTS / 1000:.2f} kWh if they draw {WATTS} W"
    return f"{record['threads']} CPU cores, no GPU (about {energy})"


def _sources(path: Path) -> str:
    """Rows of kept texts and licence by source, of a report of the cleaner.

    Raises:
        InputError: it is none, or has a file of unknown licence.
    """
    report, kept = read_json(path), dict.fromkeys(LICENCES, 0)
    try:
        counts = {file: counts["kept"] for file, counts in report["sources"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise _no_record(path, error) from error
    for file, count in counts.items():
        source = next((name for name in LICENCES if file.startswith(name)), None)
        if source is None:
            raise InputError(
                f"{path}: expected files of {', '.join(LICENCES)}, found {file}; add its source "
                f"and licence to LICENCES in {Path(__file__).name}"
            )
        kept[source] += count
    return "\n".join(
        f"| {about} | {kept[source]:,} | {licence} |"
        for source, (about, licence) in LICENCES.items()
        if kept[source]
    )


def _filled(template: str, values: dict[str, Any]) -> str:
    text = (TEMPLATES / f"{template}.md").read_text(encoding="utf-8")
    return Template(text).substitute(values)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        InputError: it is not there, or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"expected {path}, found none; name another folder by --output or --work"
        ) from error
    except ValueError as error:
        raise InputError(
            f"expected JSON in {path}, found {error}; put the original back"
        ) from error
    if not isinstance(found, dict):
        raise InputError(f"expected a JSON object in {path}, found {type(found).__name__}")
    return found
