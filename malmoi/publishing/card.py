"""The card of an exported model: what it is, how it is used, how it was evaluated, its limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCardData, metadata_load
from jinja2 import Environment, StrictUndefined

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
    """Write the card of the model in `folder`, by its report and card where it has them.

    Args:
        calibrated: whether probabilities need no temperature any more.
        linear: whether there is a linear part, which only Malmoi adds.
    """
    # Beside the weights of a released model, or above those of a run.
    report = read_json(folder / "report.json") or read_json(folder.resolve().parent / "report.json")
    plan = report.get("plan") or {}
    parts = report.get("parts") or {}
    alone, both = ((parts.get(part) or {}).get("mean_f1") for part in ("encoder", "both"))
    template = files("malmoi.publishing").joinpath("card.md").read_text(encoding="utf-8")
    jinja = Environment(
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    card = jinja.from_string(template).render(
        front=ModelCardData(**_front(folder, name, description, report)).to_yaml().strip(),
        name=name,
        model=description,
        linear=linear,
        calibrated=calibrated,
        scores=_scores(report),
        folds=(plan.get("folds") or report.get("settings") or {}).get("folds"),
        texts=(report.get("data") or {}).get("texts") or (plan.get("data") or {}).get("texts"),
        alone=alone,
        both=both,
        kept=_kept(folder),
    )
    path.write_text(card, encoding="utf-8")


def licence_of(folder: Path) -> str:
    """What the front matter of a model's card says; "unknown" where there is none."""
    try:
        licence = (metadata_load(folder / CARD) or {}).get("license")
    except Exception:  # none there, or one that no library reads
        return "unknown"
    return licence if isinstance(licence, str) else "unknown"


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


def _scores(report: Mapping[str, Any]) -> dict[str, float]:
    """The held-out scores by their titles; none without a record of an evaluation."""
    pooled = report.get("pooled")
    if not isinstance(pooled, dict):
        return {}
    found = {title: pooled.get(key) for key, title in _SCORES.items()}
    for label, scores in (pooled.get("labels") or {}).items():
        found[f"F1 of {label}"] = scores.get("f1") if isinstance(scores, dict) else None
    found["expected calibration error"] = (report.get("calibration") or {}).get("ece_after")
    return {title: score for title, score in found.items() if isinstance(score, int | float)}


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
