"""The cards of released models: written by hand, but for one marked block of numbers each.

A card is `checkpoints/NAME/README.md`; `python -m lab.release.make --cards` writes the lines
between its two marks anew, from the records and from what the benchmarks found since. A new release
begins with a short card (encoder_card.md, classifier_card.md beside this file), to be completed by
hand.
"""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from lab.release.check import read_json
from lab.release.public_texts import LICENCES
from lab.release.scores_table import LINEAR, fraction, linear_on, quality_tables, table
from malmoi.errors import InputError
from malmoi.files import write_at_once

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"
CARD = "README.md"
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class ReleasedFolders:
    """Where the parts of a release lie: an encoder, and the classifiers beside it, by task."""

    encoder: Path
    classifiers: Mapping[str, Path]


def write_cards(folders: ReleasedFolders, *, home: Path) -> None:
    """Write the numbers into the card of each folder, all or none; a new one where there is none.

    Args:
        home: the folder that they will lie in.

    Raises:
        InputError: a record is missing or not one of a release, or a card has no marks.
    """
    blocks = {folders.encoder: encoder_numbers(folders)}
    for task, folder in folders.classifiers.items():
        blocks[folder] = classifier_numbers(folder, task)
    cards = {}
    for folder, block in blocks.items():
        path, kind = folder / CARD, "encoder" if folder == folders.encoder else "classifier"
        text = path.read_text(encoding="utf-8") if path.is_file() else _new_card(kind, folder, home)
        cards[path] = with_numbers(text, block, path)
    for path, card in cards.items():
        write_at_once(path, card)


def with_numbers(card: str, block: str, path: Path) -> str:
    """The card with this block between its marks.

    Raises:
        InputError: it has not each mark once, in this order.
    """
    before, begin, rest = card.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in rest or END in before + after:
        raise InputError(
            f"{path}: expected the marks {BEGIN} and {END} once each, found others; put them where "
            "the numbers are to stand"
        )
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def _new_card(kind: str, folder: Path, home: Path) -> str:
    home = home.resolve()
    place = home.relative_to(ROOT) / folder.name if home.is_relative_to(ROOT) else folder.name
    text = (Path(__file__).parent / f"{kind}_card.md").read_text(encoding="utf-8")
    return Template(text).substitute(name=folder.name, path=place)


def encoder_numbers(folders: ReleasedFolders) -> str:
    """The block of an encoder: how it was made, of what, and how good it is.

    Raises:
        InputError: a record is missing, or not one of a release.
    """
    encoder, path = folders.encoder, folders.encoder / "run.json"
    record = read_json(path)
    try:
        millions = record["networks"]["discriminator"]["parameters"] / 1e6
        making = _making(record, encoder)
    except (KeyError, TypeError) as error:
        raise _no_record(path, error) from error
    return "\n\n".join(
        [
            making,
            _sources(encoder / "corpus.json"),
            quality_tables(encoder, f"{millions:.1f}M"),
            _classifier_table(folders),
        ]
    )


def classifier_numbers(folder: Path, task: str) -> str:
    """The block of a classifier of `reviews` or `memos`: its scores in cross-validation.

    Raises:
        InputError: as `encoder_numbers`.
    """
    path = folder / "report.json"
    report = read_json(path)
    try:
        folds = [fold["macro_f1"] for fold in report["folds"]]
        labels = report["data"]["per_label"]
        spread = f"{statistics.stdev(folds):.4f}"
        linear = fraction(linear_on("memos") if task == "memos" else None)
        scores = [("all", f"{sum(labels.values()):,}", f"{_mean(report):.4f}", spread, linear)]
        for origin, found in report.get("by_origin", {}).items():
            linear = fraction(linear_on("written") if origin == "written" else None)
            scores.append((origin, f"{found['texts']:,}", f"{found['macro_f1']:.4f}", "", linear))
        errors = [
            ("before calibration", f"{report['calibration']['ece_before']:.3f}"),
            ("after calibration", f"{report['calibration']['ece_after']:.3f}"),
        ]
    except (KeyError, TypeError, statistics.StatisticsError) as error:
        raise _no_record(path, error) from error
    head = ("texts", "number", f"macro F1, {len(folds)} folds", "standard deviation", LINEAR)
    return "\n\n".join(
        [
            table(head, scores),
            table(("label", "texts"), [(label, f"{n:,}") for label, n in labels.items()]),
            table(("expected calibration error, out of fold", ""), errors),
        ]
    )


def _making(record: dict[str, Any], folder: Path) -> str:
    """How the encoder was pre-trained."""
    plan, progress = record["plan"], record["progress"]
    shape = record["networks"]["discriminator"]
    parameters = shape.get("parameters")
    threads = plan["execution"]["threads"]
    facts = {
        "parameters": "" if parameters is None else f"{parameters / 1e6:.1f} million",
        "layers and width": f"{shape['num_hidden_layers']}, {shape['hidden_size']}",
        "tokens seen": f"{progress['tokens'] / 1e6:.0f} million",
        "steps": f"{progress['step']:,}",
        "hours": f"{progress['seconds'] / 3600:.1f}",
        "device": f"CPU, threads: {threads}" if record["device"] == "cpu" else record["device"],
        "tokens in a batch": f"{plan['batching']['tokens_per_batch']:,}",
        "peak learning rate": f"{plan['optimizer']['learning_rate']:g}",
        "seed": str(plan["start"]["seed"]),
        "started from": Path(plan["start"]["init"]).name,
    }
    return table(("", "encoder"), list(facts.items()))


def _sources(path: Path) -> str:
    """What the cleaner left of each source, with its licence.

    Raises:
        InputError: there is no such report, or it has a file of unknown licence.
    """
    report, kept = read_json(path), dict.fromkeys(LICENCES.values(), 0)
    try:
        counts = {file: counts["kept"] for file, counts in report["sources"].items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise _no_record(path, error) from error
    for file, count in counts.items():
        source = next((name for name in LICENCES if file.startswith(name)), None)
        if source is None:
            raise InputError(
                f"{path}: expected files of {', '.join(LICENCES)}, found {file}; add its source "
                "and licence to LICENCES in lab/release/public_texts.py"
            )
        kept[LICENCES[source]] += count
    if not any(kept.values()):
        raise _no_record(path, ValueError("no text was kept"))
    rows = [(about, f"{texts:,}", licence) for (about, licence), texts in kept.items() if texts]
    return table(("source", "texts left by the cleaner", "licence"), rows)


def _classifier_table(folders: ReleasedFolders) -> str:
    """The classifiers made from the encoder, beside a linear one of the same texts alone."""
    rows = []
    for task, folder in folders.classifiers.items():
        if not folder.name.startswith(f"{folders.encoder.name}-"):
            continue
        report = read_json(folder / "report.json")
        try:
            mean = _mean(report)
        except (KeyError, TypeError, statistics.StatisticsError) as error:
            raise _no_record(folder / "report.json", error) from error
        seconds = report.get("seconds", 0) + report.get("ratings_first", {}).get("seconds", 0)
        linear = fraction(linear_on("memos") if task == "memos" else None)
        link = f"[{folder.name}](../{folder.name}/{CARD})"
        rows.append((link, f"{mean:.4f}", linear, f"{seconds / 60:.0f}"))
    head = ("classifier", "macro F1, mean of its folds", LINEAR, "minutes of fine-tuning")
    return table(head, rows)


def _mean(report: dict[str, Any]) -> float:
    return statistics.mean(fold["macro_f1"] for fold in report["folds"])


def _no_record(path: Path, error: Exception) -> InputError:
    return InputError(
        f"expected the record of a release in {path}, found another ({error!r}); name the "
        "folder of a release by --output"
    )
