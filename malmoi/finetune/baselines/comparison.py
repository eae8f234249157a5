"""What stands beside the folds of an encoder: baselines and learning curve.

All of it is for one label a text; the folds are those of the run's first seed.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from malmoi.devices import choose_device
from malmoi.files import write_at_once
from malmoi.finetune.baselines.baseline import (
    Baseline,
    comparison_table,
    median_latency_ms,
)
from malmoi.finetune.baselines.classic import in_folds
from malmoi.finetune.baselines.llm import ask_llm
from malmoi.finetune.baselines.registry import CLASSICAL, ENCODER, MODEL, RANDOM_WEIGHTS
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.fold_results import CrossValidation, FoldResult
from malmoi.finetune.evaluation.learning_curve import CurvePoint, learning_curve
from malmoi.finetune.evaluation.scores import macro_f1
from malmoi.finetune.settings import LlmSettings
from malmoi.finetune.training.cross_validation import Experiment, result_path, run_job
from malmoi.finetune.training.fit import train
from malmoi.inference.classifier import Classifier
from malmoi.inference.engine_choice import open_classifier
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities

_RANDOM = "random-weights"
_CURVE = "learning-curve.json"


def compare(
    examples: Examples,
    experiment: Experiment,
    result: CrossValidation,
    work: Path,
    llm: LlmSettings,
    both: CrossValidation | None = None,
) -> tuple[list[Baseline], list[dict[str, Any]]]:
    """Measure the baselines in the folds of the first seed, and print the table.

    Args:
        result: of the encoder alone.
        work: holds the trained model, and the folds of random weights once they are done.
        llm: asked too when it names a model; the texts of its sample are sent there.
        both: of the encoder with a linear model beside it, where there is one.

    Returns:
        The rows, and what report.json says of each.

    Raises:
        InputError: the endpoint cannot be used, or the analyser fails.
    """
    seed = result.seeds[0]
    fold_of, label_ids = result.fold_of(seed).tolist(), result.targets.tolist()
    texts, labels = examples.texts, examples.labels
    rows = []
    if both is not None:
        whole = Classifier.load(work / "model", "torch")
        rows.append(_row(MODEL, both, median_latency_ms(whole.predict, texts)))
    alone = Classifier(open_classifier(work / "model", "torch"), ENCODER)
    rows.append(_row(ENCODER, result, median_latency_ms(alone.predict, texts)))
    print("baselines in the same folds", flush=True)
    for name, classifying in CLASSICAL.items():
        rows.append(in_folds(name, classifying, texts, label_ids, fold_of, len(labels), seed))
        print(f"  {name}: {rows[-1].mean_f1:.4f}", flush=True)
    if not experiment.random_weights:
        print(f"  {RANDOM_WEIGHTS}: as many trainings again", flush=True)
        rows.append(_row(RANDOM_WEIGHTS, _with_random_weights(experiment, result, work), None))
        print(f"  {rows[-1].name}: {rows[-1].mean_f1:.4f}", flush=True)
    summaries = [row.summary() for row in rows]
    if llm.model:
        print(f"  asking {llm.model}: texts are sent to {llm.base_url}", flush=True)
        asked = ask_llm(texts, label_ids, fold_of, labels, seed, llm)
        for line in asked.lines():
            print(f"  {line}", flush=True)
        rows.append(asked.baseline)
        summaries.append(asked.summary())
    print(comparison_table(rows), flush=True)
    return rows, summaries


def _row(name: str, result: CrossValidation, latency_ms: float | None) -> Baseline:
    """What k-fold measured, of its first seed."""
    folds = result.of_seed(result.seeds[0])
    return Baseline(
        name=name,
        predictions=result.predicted(result.seeds[0]).tolist(),
        fold_f1=[fold.scores["macro_f1"] for fold in folds],
        train_seconds=sum(fold.seconds for fold in folds),
        latency_ms=latency_ms,
    )


def _with_random_weights(
    experiment: Experiment, result: CrossValidation, work: Path
) -> CrossValidation:
    """The same encoder without what pre-training taught it; folds once done are kept."""
    seed = result.seeds[0]
    untaught = replace(
        experiment,
        random_weights=True,
        keep_head=False,
        # Nothing is there that lower layers would have to keep.
        training=replace(experiment.training, layer_decay=1.0),
    )
    folder = work / _RANDOM
    folder.mkdir(exist_ok=True)
    results = []
    for fold in range(1, experiment.folds + 1):
        path = result_path(folder, seed, fold)
        if not path.exists():
            run_job(untaught, seed, fold, folder)
        results.append(FoldResult.load(path))
    return replace(result, seeds=(seed,), results=results)


def measure_learning_curve(
    experiment: Experiment, result: CrossValidation, work: Path
) -> list[CurvePoint]:
    """Macro F1 of the first fold by an eighth, a quarter, a half and all of its training texts.

    Points once measured are kept in `work`.
    """
    seed = result.seeds[0]
    kept = work / _CURVE
    scores: dict[str, float] = json.loads(kept.read_text()) if kept.is_file() else {}
    device = choose_device(experiment.device)
    tokens = DeviceTokens(experiment.data.tokens, device)

    held_out = np.flatnonzero(experiment.fold_of[seed] == 1)

    def train_and_score(places: list[int]) -> float:
        key = str(len(places))
        if key not in scores:
            model, data = experiment.new_model(seed), experiment.data
            train(model, data, np.array(places), experiment.training, seed=seed, device=device)
            found = predict_probabilities(model, tokens, held_out, "single", device)
            expected = data.targets[held_out]
            scores[key] = macro_f1(
                expected.tolist(), found.argmax(axis=1).tolist(), len(result.labels)
            )
            write_at_once(kept, json.dumps(scores))
        return scores[key]

    return learning_curve(
        result.targets,
        experiment.train_places(seed, 1),
        train_and_score,
        full_score=result.of_seed(seed)[0].scores["macro_f1"],
        seed=seed + 1,
    )
