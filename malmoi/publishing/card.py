"""The card of an exported model: what it is, how it is used, how it was evaluated, its limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCardData, metadata_load

from malmoi.model_folders import is_hub_id, read_config, read_json

if TYPE_CHECKING:
    from malmoi.inference.description import ModelDescription

CARD = "README.md"
_SCORES = {
    "accuracy": "accuracy",
    "macro_f1": "macro F1",
    "micro_f1": "micro F1",
    "spearman": "Spearman correlation",
    "pearson": "Pearson correlation",
}
# Sections of the card that a model has already, and that hold wherever it lies.
_KEPT_SECTIONS = ("How it was made", "Limits")
# Links to files beside the old card lead nowhere from the new one.
_local_links = re.compile(r"\[([^\]]*)\]\((?![a-z]+:)[^)]*\)").sub


def write_card(
    path: Path,
    folder: Path,
    name: str,
    description: ModelDescription,
    *,
    calibrated: bool,
    linear: bool,
) -> None:
    """Write the card of the model in `folder`.

    Args:
        path: the new README.md.
        folder: the model that is exported, with its report and card where it has them.
        name: what it is called.
        description: of the classifier.
        calibrated: whether probabilities need no temperature any more.
        linear: whether there is a linear part, which only Malmoi adds.
    """
    report = _report(folder)
    template = files("malmoi.publishing").joinpath("card.md").read_text(encoding="utf-8")
    values = {
        "front": ModelCardData(**_front(folder, name, description, report)).to_yaml().strip(),
        "name": name,
        "gives": _what(description),
        "labels": ", ".join(description.labels),
        "pipeline": _pipeline_call(description),
        "pipeline_note": _THRESHOLDS if description.gives == "labels" else "",
        "answer": _answer_of_logits(description),
        "texts": _texts(description),
        "lists": ", ".join(f"[{text}]" for text in _texts(description).split(", ")),
        "other_labels": _OTHER_LABELS if linear else "",
        "only_malmoi": _only_malmoi(report, calibrated=calibrated, linear=linear),
        "max_length": str(description.max_length),
        "evaluation": _evaluation(report),
        "kept": _kept(folder),
    }
    path.write_text(Template(template).substitute(values), encoding="utf-8")


def _only_malmoi(report: Mapping[str, Any], *, calibrated: bool, linear: bool) -> str:
    """Lines about what other programs leave out; empty where they leave out nothing."""
    if not linear:
        return "" if calibrated else _NOT_CALIBRATED
    parts = report.get("parts") or {}
    alone, both = ((parts.get(name) or {}).get("mean_f1") for name in ("encoder", "both"))
    scores = ""
    if isinstance(alone, int | float) and isinstance(both, int | float):
        scores = (
            f"  The encoder alone had a macro F1 of {alone:.4f} in the folds, both {both:.4f}.\n"
        )
    return _ENCODER_ALONE + scores


_NOT_CALIBRATED = (
    "- Only Malmoi gives calibrated probabilities: the temperature in `calibration.json` could not "
    "be worked into the last layer.\n"
)
_ENCODER_ALONE = """\
- Only Malmoi adds the linear model (`linear.json`), and the scores above are with it. Pipeline,
  onnxruntime and page answer by the encoder alone; its probabilities are not calibrated.
"""
# Pipeline knows of none, and gives probabilities only.
_THRESHOLDS = '  # a label counts from its number under "thresholds" in config.json'
# The share of malmoi-small-reviews: docs/how-to/export.md.
_OTHER_LABELS = """\
Only Malmoi gives the labels that were evaluated: the other ways are without the linear part, and
give other labels (film reviews by malmoi-small-reviews: about one in eight).

"""


def licence_of(folder: Path) -> str:
    """What the front matter of a model's card says; "unknown" where there is none."""
    try:
        licence = (metadata_load(folder / CARD) or {}).get("license")
    except Exception:  # none there, or one that no library reads
        return "unknown"
    return licence if isinstance(licence, str) else "unknown"


def _report(folder: Path) -> dict[str, Any]:
    """report.json, beside the weights of a released model or above those of a run."""
    return read_json(folder / "report.json") or read_json(folder.resolve().parent / "report.json")


def _front(
    folder: Path, name: str, description: ModelDescription, report: Mapping[str, Any]
) -> dict[str, Any]:
    front: dict[str, Any] = {
        "language": "ko",
        "license": licence_of(folder),
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "tags": [str(read_config(folder).get("model_type", "electra")), "korean", "onnx"]
        + ["transformers.js", "malmoi"],
    }
    plan = report.get("plan") or {}
    model = (plan.get("encoder") or {}).get("model") or report.get("model")
    if isinstance(model, str) and model.count("/") == 1 and is_hub_id(model.partition("@")[0]):
        front["base_model"] = model.partition("@")[0]
    front["model_name"] = name
    front["labels"] = description.labels
    return front


def _what(description: ModelDescription) -> str:
    what = {
        "label": "It gives one label",
        "labels": "It gives any number of labels",
        "value": "It gives a value",
    }[description.gives]
    return f"{what} to {'a pair of Korean texts' if description.pairs else 'a Korean text'}"


def _pipeline_call(description: ModelDescription) -> str:
    text = '"배송은 빨랐는데 향이 너무 세요"'
    given = f'{{"text": {text}, "text_pair": "향이 강하네요"}}' if description.pairs else text
    every = ", top_k=None" if description.gives == "labels" else ""
    return f"classify({given}{every})"


def _texts(description: ModelDescription) -> str:
    second = ', "향이 강하네요"' if description.pairs else ""
    return f'"배송은 빨랐는데 향이 너무 세요"{second}'


def _answer_of_logits(description: ModelDescription) -> str:
    if description.gives == "value":
        return "print(float(logits[0]))"
    if description.gives == "labels":
        return (
            'thresholds = config.get("thresholds", [0.5] * len(logits))\n'
            "probabilities = 1 / (1 + np.exp(-logits))\n"
            'print([config["id2label"][str(n)] for n in np.flatnonzero(probabilities >= '
            "thresholds)])"
        )
    return 'print(config["id2label"][str(logits.argmax())])'


def _evaluation(report: Mapping[str, Any]) -> str:
    """A table of the held-out scores, and where they come from."""
    pooled = report.get("pooled")
    if not isinstance(pooled, dict):
        return "No record of an evaluation lay beside the model.\n"
    data, settings = report.get("data") or {}, report.get("settings") or {}
    plan = report.get("plan") or {}
    folds = (plan.get("folds") or settings).get("folds")
    texts = data.get("texts") or (plan.get("data") or {}).get("texts")
    lines = [
        f"{folds}-fold cross-validation by Malmoi"
        + (f" on {texts:,} texts" if isinstance(texts, int) else "")
        + "; every text was scored by a model that had not learnt it.\n",
        "| score | held-out texts |",
        "| --- | --- |",
    ]
    lines += [
        f"| {title} | {pooled[key]:.4f} |"
        for key, title in _SCORES.items()
        if isinstance(pooled.get(key), int | float)
    ]
    lines += [
        f"| F1 of {label} | {scores['f1']:.4f} |"
        for label, scores in (pooled.get("labels") or {}).items()
        if isinstance(scores, dict) and isinstance(scores.get("f1"), int | float)
    ]
    calibration = report.get("calibration") or {}
    if isinstance(calibration.get("ece_after"), int | float):
        lines.append(f"| expected calibration error | {calibration['ece_after']:.4f} |")
    return "\n".join(lines) + "\n"


def _kept(folder: Path) -> str:
    """Sections of the model's own card, without links that would lead nowhere."""
    try:
        card = (folder / CARD).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
    sections = dict(
        part.partition("\n")[::2] for part in re.split(r"^## ", card, flags=re.MULTILINE)[1:]
    )
    kept = [
        f"## {name}{' (of the model)' if name == 'Limits' else ''}\n{sections[name].rstrip()}\n"
        for name in _KEPT_SECTIONS
        if name in sections
    ]
    return _local_links(r"\1", "\n".join(kept))
