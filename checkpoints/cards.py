"""The cards of the released checkpoints, filled in from their own records and measured results."""

import json
import statistics
from pathlib import Path
from string import Template
from typing import Any

TEMPLATES = Path(__file__).parent / "card_templates"
QUALITY = Path(__file__).parents[1] / "benchmarks" / "results" / "quality.json"
LICENCES = {
    "reviews": ("film reviews (e9t/nsmc)", "CC0 1.0"),
    "chatbot": ("everyday sentences (songys/Chatbot_data)", "MIT"),
    "petitions": ("petitions to the government (lovit/petitions_archive)", "public record, KOGL"),
}
TASKS = {
    "nsmc": "NSMC, rebuilt split: film reviews, 2 classes",
    "three": "film reviews, 3 classes from the rating",
    "hate": "Korean hate speech (its dev file)",
    "kote": "KOTE, 44 emotions (trained on its val file)",
    "korsts": "KorSTS, similarity of sentences",
    "questions": "question pairs",
    "memos": "this project's memos, 5 folds",
}
METRICS = {"macro_f1": "macro F1", "accuracy": "accuracy", "spearman": "Spearman"}
# The metric of a task is accuracy or Spearman where these say so.
METRIC_OF = {"nsmc": "accuracy", "questions": "accuracy", "korsts": "spearman"}
LINEAR = "characters, linear SVM"
# Settings of the run that the encoder's card names.
SETTINGS = ("seed", "mask_fraction", "unigram_fraction", "bag_weight")
# A laptop's two cores under load, to give the energy an order of magnitude.
WATTS = 30
STOCK = "From the released encoder; a stock `ElectraForSequenceClassification`."
ABOUT = {
    "reviews": {
        "about": f"긍정, 중립 or 부정: what a review says, the app's default. {STOCK}",
        "example": "배송은 빨랐는데 향이 너무 세요",
        "data": "film reviews with ratings (부정 1-4, 중립 5-8, 긍정 9-10; CC0), as many "
        "of each label, and the project's own reviews (`corpora/reviews`)",
        "limits": "A rating is no label: people give 8 with a complaint and 10 with none. The "
        "written reviews are hard on purpose (irony, mixed verdicts), and a linear classifier over "
        "character n-grams trained on them alone is better on them (macro F1 0.69; "
        "`docs/experiments.md`). So take its answers as a first guess and correct them in the app. "
        "It has seen ratings of reviews of NSMC's training file, none of its test file.",
    },
    "memos": {
        "about": f"꿈, 일기, 일정, 메모 or 오류: what somebody noted for themselves. {STOCK}",
        "example": "내일 세시 치과",
        "data": "the project's memos (`corpora/memos`)",
        "limits": "The memos were written for the project, not collected: people's own notes "
        "differ more, and the score above will not be reached on them. A linear classifier over "
        "character n-grams is better on these memos (macro F1 0.8746, 5 folds; "
        "`docs/experiments.md`): the encoder knows film reviews, not memos.",
    },
}


def write_encoder_card(folder: Path) -> None:
    """Write `folder/README.md` from its run.json, corpus.json and the results so far."""
    record = read_json(folder / "run.json")
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
        "sources": _sources(read_json(folder / "corpus.json")["sources"]),
        "scores": quality_table(folder.name),
        **{name: f"{record['settings'][name]:g}" for name in SETTINGS},
    }
    _fill("encoder", values, folder)


def write_classifier_card(folder: Path, task: str, encoder: str) -> None:
    """Write `folder/README.md` from its report.json; `task` is a key of ABOUT."""
    report = read_json(folder / "report.json")
    folds = [fold["macro_f1"] for fold in report["folds"]]
    counts = ", ".join(f"{label} {count:,}" for label, count in report["data"]["per_label"].items())
    scores = (
        f"Macro F1 over {len(folds)} folds: {statistics.mean(folds):.4f} "
        f"(standard deviation {statistics.stdev(folds):.4f}); texts: {counts}."
    )
    for origin, found in report.get("by_origin", {}).items():
        scores += (
            f" {origin.capitalize()} reviews alone ({found['texts']:,}): {found['macro_f1']:.4f}."
        )
    _fill(
        "classifier",
        ABOUT[task] | {"name": folder.name, "encoder": encoder, "scores": scores},
        folder,
    )


def quality_table(name: str) -> str:
    """What benchmarks/quality.py found of this encoder, of random weights and of linear models."""
    if not QUALITY.is_file():
        return "Not measured yet."
    runs = [run for run in read_json(QUALITY)["runs"] if run["part"] == "test"]
    lines = []
    for task, about in TASKS.items():
        metric = METRIC_OF.get(task, "macro_f1")
        cells = []
        for encoder in (name, f"{name}, random weights", LINEAR):
            found = [r[metric] for r in runs if r["task"] == task and r["encoder"] == encoder]
            spread = f" ± {statistics.stdev(found):.2f}" if len(found) > 1 else ""
            cells.append(f"{statistics.mean(found):.2f}{spread} ({len(found)})" if found else "")
        if cells[0]:
            lines.append(f"| {about} | {METRICS[metric]} | {' | '.join(cells)} |")
    if not lines:
        return "Not measured yet."
    head = "| task | score (seeds) | this encoder | random weights | characters, linear SVM |"
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *lines])


def _where(record: dict[str, Any], hours: float) -> str:
    if record["device"] != "cpu":
        return f"one {record['device']}"
    energy = f"{hours * WATTS / 1000:.2f} kWh if they draw {WATTS} W"
    return f"{record['threads']} CPU cores, no GPU (about {energy})"


def _sources(counts_of: dict[str, Any]) -> str:
    kept: dict[str, int] = {}
    for file, counts in counts_of.items():
        source = next((key for key in LICENCES if key in file.lower()), "reviews")
        kept[source] = kept.get(source, 0) + counts["kept"]
    return "\n".join(
        f"| {LICENCES[source][0]} | {count:,} | {LICENCES[source][1]} |"
        for source, count in kept.items()
    )


def _fill(template: str, values: dict[str, Any], folder: Path) -> None:
    text = Template((TEMPLATES / f"{template}.md").read_text(encoding="utf-8"))
    (folder / "README.md").write_text(text.substitute(values), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
