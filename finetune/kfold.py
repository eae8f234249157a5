"""Fine-tune a classifier and say how good it is: k-fold, then once more on all the data.

python finetune/kfold.py --labels 꿈,일기,일정,메모,오류
"""

import sys
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from corpora.atomic import directory_at_once
from corpora.command_line import run_command
from corpora.errors import InputError
from finetune.encoders import (
    encoder_source,
    find_encoder,
    load_encoder_tokenizer,
    load_for_classification,
)
from finetune.examples import Examples, parse_labels, read_examples
from finetune.folds import CrossValidation, assign_folds, cross_validate, label_ids, total_steps
from finetune.model_files import longest_input
from finetune.output import (
    check_free,
    write_predictions,
    write_report,
)
from finetune.progress import training_progress
from finetune.scores import score
from finetune.training import TrainSettings, train_classifier
from pretrain.saving import save_model

ABOUT = """Measure an encoder on labelled texts by stratified k-fold (macro F1), then train on all
of them and save the classifier to runs/finetune/."""

# The labelled samples that the project carries, found by their labels.
OWN_DATA: dict[frozenset[str], Path] = {
    frozenset({"꿈", "일기", "일정", "메모", "오류"}): Path("corpora/memos"),
    frozenset({"긍정", "부정", "중립"}): Path("corpora/reviews"),
}


@dataclass(kw_only=True)
class KfoldSettings(TrainSettings):
    """What to train, on what, how often."""

    labels: str
    """Label names with commas between them; they must be those of the data."""
    data: Path | None = None
    """File or folder of labelled texts; by default the sample that has these labels."""
    model: str | None = None
    """Encoder: directory, pre-training run or Hub id; by default the newest finished run."""
    folds: int = 5
    """Parts that the texts are split into; each is predicted by a model trained on the others."""
    output: Path | None = None
    """Folder for the run; by default runs/finetune/ with the data's name and the time."""
    text_column: str | None = None
    """Column of the texts, if it has an unusual name."""
    label_column: str | None = None
    """Column of the labels, if it has an unusual name."""
    random_weights: bool = False
    """Start from random weights instead: the baseline that shows what pre-training adds."""


def main(settings: KfoldSettings) -> None:
    """Check everything, cross-validate, train on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    started = time.monotonic()
    settings.check()
    labels = parse_labels(settings.labels)
    if settings.folds < 2:
        raise InputError(f"expected --folds at least 2, found {settings.folds}")
    path = settings.data or _own_data(labels)
    output = settings.output or _new_run(path)
    check_free(output)
    examples = read_examples(
        path,
        labels,
        text_column=settings.text_column,
        label_column=settings.label_column,
        per_label=settings.folds,
    )
    source = encoder_source(settings.model or find_encoder())
    tokenizer = load_encoder_tokenizer(source)
    model = load_for_classification(
        source,
        labels,
        dropout=settings.dropout,
        seed=settings.seed,
        random_weights=settings.random_weights,
        tokenizer=tokenizer,
    )
    training = _training(settings, model, tokenizer)
    _print_header(examples, source, model, training, settings)
    with directory_at_once(output) as scratch:
        result = _train(model, tokenizer, examples, training, settings.folds)
        save_model(model, tokenizer, scratch / "model")
        write_predictions(scratch / "predictions.csv", examples, result)
        report = _report(examples, result, source, training, settings)
        report["seconds"] = round(time.monotonic() - started, 1)
        write_report(scratch / "report.json", report)
        check_free(output)  # hours have passed
    print(f"classifier: {output / 'model'} ({time.monotonic() - started:.0f} s)", flush=True)


def _own_data(labels: list[str]) -> Path:
    path = OWN_DATA.get(frozenset(labels))
    if path is None:
        raise InputError(
            f"no sample of the project has the labels {', '.join(labels)}; "
            "give your labelled texts with --data"
        )
    return path


def _new_run(data: Path) -> Path:
    name = f"{data.resolve().name.split('.')[0]}-{time.strftime('%Y%m%d-%H%M%S')}"
    return Path("runs", "finetune", name)


def _training(
    settings: KfoldSettings, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> TrainSettings:
    """The resolved training settings; the tokenizer remembers the length for later predictions."""
    own = {field.name: getattr(settings, field.name) for field in fields(TrainSettings)}
    training = TrainSettings(**own).resolved(
        int(getattr(model.config, "hidden_size", 0)), random_weights=settings.random_weights
    )
    training.max_length = min(training.max_length, longest_input(model, tokenizer))
    tokenizer.model_max_length = training.max_length
    return training


def _print_header(
    examples: Examples,
    source: str,
    model: PreTrainedModel,
    training: TrainSettings,
    settings: KfoldSettings,
) -> None:
    counts = ", ".join(f"{label} {count:,}" for label, count in examples.counts.items())
    print(f"data: {examples.path}, {len(examples.texts):,} texts ({counts})")
    for reason, count in (
        ("left out {:,} repeated texts", examples.repeats),
        ("left out {:,} texts that are empty after cleaning", examples.empty),
        ("warning: left out {:,} texts with another label than before", examples.contradictions),
    ):
        if count:
            print(reason.format(count))
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    weights = ", random weights" if settings.random_weights else ""
    print(f"model: {source} ({millions:.1f} million parameters{weights})")
    shown = ", ".join(f"{name} {value}" for name, value in asdict(training).items())
    print(f"settings: folds {settings.folds}, {shown}", flush=True)


def _train(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    examples: Examples,
    training: TrainSettings,
    folds: int,
) -> CrossValidation:
    """Cross-validate with copies of `model`, then train `model` itself on everything."""
    fold_of = assign_folds(examples.label_ids, folds, training.seed)
    part = "fold 1"

    def on_fold(fold: int, scores: dict[str, Any]) -> None:
        nonlocal part
        print(f"F1 score for fold {fold}: {scores['macro_f1']:.4f}", flush=True)
        part = f"fold {fold + 1}" if fold < folds else "all texts"

    with training_progress(total_steps(fold_of, training)) as advance:
        result = cross_validate(
            model,
            tokenizer,
            examples,
            fold_of,
            training,
            on_fold=on_fold,
            progress=lambda done, total: advance(part),
        )
        print(
            f"Average F1 score: {result.mean_f1:.4f} (standard deviation {result.sd_f1:.4f})",
            flush=True,
        )
        train_classifier(
            model,
            tokenizer,
            examples.texts,
            examples.label_ids,
            training,
            progress=lambda done, total: advance(part),
        )
    return result


def _report(
    examples: Examples,
    result: CrossValidation,
    source: str,
    training: TrainSettings,
    settings: KfoldSettings,
) -> dict[str, Any]:
    predicted = label_ids(result.predictions, examples.labels)
    return {
        "labels": examples.labels,
        "data": {
            "path": str(examples.path),
            "sha256": examples.sha256,
            "texts": len(examples.texts),
            "per_label": examples.counts,
            "left_out": {
                "repeated": examples.repeats,
                "contradicting": examples.contradictions,
                "empty": examples.empty,
            },
        },
        "model": source,
        "random_weights": settings.random_weights,
        "settings": {"folds": settings.folds, **asdict(training)},
        "mean_f1": result.mean_f1,
        "sd_f1": result.sd_f1,
        "folds": result.folds,
        "pooled": score(examples.label_ids, predicted, examples.labels),
    }


if __name__ == "__main__":
    sys.exit(run_command(KfoldSettings, main, ABOUT))
