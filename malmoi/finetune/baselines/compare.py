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
    fold_f1,
    median_latency_ms,
)
from malmoi.finetune.baselines.classic import in_folds
from malmoi.finetune.baselines.llm import ask_llm
from malmoi.finetune.baselines.registry import CLASSICAL, ENCODER, MODEL, RANDOM_WEIGHTS
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.evaluation.learning_curve import CurvePoint, learning_curve
from malmoi.finetune.evaluation.scores import macro_f1
from malmoi.finetune.settings import LlmSettings
from malmoi.finetune.training.cross_validation import (
    CrossValidation,
    Experiment,
    FoldResult,
    result_path,
    run_job,
)
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
    fold_of = [int(fold) for fold in result.fold_of(seed)]
    label_ids = [int(target) for target in result.targets]
    alone = Classifier(open_classifier(work / "model", "torch"), ENCODER)
    rows = [_own(ENCODER, examples, result, alone)]
    if both is not None:
        whole = Classifier.load(work / "model", "torch")
        rows.insert(0, _own(MODEL, examples, both, whole))
    print("baselines in the same folds", flush=True)
    for name, classifying in CLASSICAL.items():
        rows.append(
            in_folds(
                *(name, classifying, examples.texts, label_ids, fold_of),
                *(len(examples.labels), seed),
            )
        )
        print(f"  {name}: {rows[-1].mean_f1:.4f}", flush=True)
    if not experiment.random_weights:
        print(f"  {RANDOM_WEIGHTS}: as many trainings again", flush=True)
        rows.append(_random_weights(experiment, result, work))
        print(f"  {rows[-1].name}: {rows[-1].mean_f1:.4f}", flush=True)
    summaries = [row.summary() for row in rows]
    if llm.model:
        print(f"  asking {llm.model}: texts are sent to {llm.base_url}", flush=True)
        asked = ask_llm(examples.texts, label_ids, fold_of, examples.labels, seed, llm)
        for line in asked.lines():
            print(f"  {line}", flush=True)
        rows.append(asked.baseline)
        summaries.append(asked.summary())
    print(comparison_table(rows), flush=True)
    return rows, summaries


def _own(
    name: str, examples: Examples, result: CrossValidation, classifier: Classifier
) -> Baseline:
    seed = result.seeds[0]
    return Baseline(
        name=name,
        predictions=[int(label) for label in result.predicted(seed)],
        fold_f1=[fold.scores["macro_f1"] for fold in result.of_seed(seed)],
        train_seconds=sum(fold.seconds for fold in result.of_seed(seed)),
        latency_ms=median_latency_ms(classifier.predict, examples.texts),
    )


def _random_weights(experiment: Experiment, result: CrossValidation, work: Path) -> Baseline:
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
    predictions = np.zeros(len(result.targets), dtype=np.int64)
    seconds = 0.0
    for fold in range(1, experiment.folds + 1):
        path = result_path(folder, seed, fold)
        if not path.exists():
            run_job(untaught, seed, fold, folder)
        found = FoldResult.load(path)
        predictions[found.places] = found.probabilities.argmax(axis=1)
        seconds += found.seconds
    predicted = [int(label) for label in predictions]
    fold_of = [int(fold) for fold in result.fold_of(seed)]
    return Baseline(
        name=RANDOM_WEIGHTS,
        predictions=list(predicted),
        fold_f1=fold_f1(
            [int(target) for target in result.targets], predicted, fold_of, len(result.labels)
        ),
        train_seconds=seconds,
        latency_ms=None,
    )


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

    def train_and_score(train_places: list[int], test_places: list[int]) -> float:
        key = str(len(train_places))
        if key not in scores:
            model = experiment.new_model(seed)
            train(
                model,
                experiment.data,
                np.sort(np.array(train_places)),
                experiment.training,
                seed=seed,
                device=device,
            )
            found = predict_probabilities(model, tokens, np.array(test_places), "single", device)
            expected = experiment.data.targets[test_places]
            scores[key] = macro_f1(
                expected.tolist(), found.argmax(axis=1).tolist(), len(result.labels)
            )
            write_at_once(kept, json.dumps(scores))
        return scores[key]

    return learning_curve(
        result.targets,
        result.fold_of(seed),
        train_and_score,
        folds=[1],
        full_scores={1: result.of_seed(seed)[0].scores["macro_f1"]},
        seed=seed,
    )
