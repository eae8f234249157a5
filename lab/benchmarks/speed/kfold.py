"""How fast is k-fold? Beside transformers' Trainer, with its defaults and set up with care.

    python -m lab.benchmarks.speed.kfold

The written memos of the repository, five folds and all texts, the same encoder, epochs, batch and
learning rate. Training by training the two take turns, each in a process of its own, so that peak
memory is each one's; reading and importing is not in the time. Trainer gets the tokenizer, so it
pads to the longest text of a batch (DataCollatorWithPadding, its default). `trainer` computes in
fp32 on a CPU, as it does by default, and trains one fold, which takes long enough; `trainer-bf16`
in bf16, with texts grouped by length and the attention that trains fastest. Layer-wise decay, which
Trainer has not, is off in all.

`ours` is one training after the other; `side-by-side` is all of them as k-fold does them, in a
process for each thread, first and last of all. Its time has the start of these processes in it.
"""

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import f1_score

from lab.benchmarks.quality.downstream import encoder_name
from lab.benchmarks.result_files import write_result
from malmoi.command_line import run_command
from malmoi.devices import attention_for, choose_device
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.folds import assign_folds, strata_of
from malmoi.finetune.data.reading import read_examples
from malmoi.finetune.plan import TrainingPlan, plan_training
from malmoi.finetune.settings import TrainSettings
from malmoi.finetune.training.cross_validation import Experiment, result_path, run_job
from malmoi.finetune.training.encoders import load_encoder_tokenizer, load_for_classification
from malmoi.finetune.training.fit import TrainingData
from malmoi.finetune.training.fold_processes import run_jobs
from malmoi.inference.batching import tokenize_all
from malmoi.labels.tasks import read_task
from malmoi.model_folders import encoder_source, find_encoder

ROOT = Path(__file__).parents[3]
RESULTS = Path(__file__).parents[1] / "results" / "kfold.json"
SEED = 42
TASK = read_task(ROOT / "corpora" / "memos")
ARMS = ("trainer", "trainer-bf16", "ours")
SIDE_BY_SIDE = "side-by-side"


@dataclass(kw_only=True)
class KfoldSpeedSettings:
    """What is trained."""

    model: str | None = None
    """Encoder; by default the newest finished pre-training run, else the smallest released."""
    epochs: int = 2
    """Passes over the training texts."""
    folds: int = 5
    """Folds."""
    arm: str = ""
    """Used by the script itself: train one fold in this process."""
    fold: int = 1
    """With --arm; 0 for all texts."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: KfoldSpeedSettings) -> None:
    """Take turns, print the table, write the results."""
    if settings.arm:
        print(json.dumps(_one_training(settings)))
        return
    source = encoder_source(settings.model or find_encoder())
    turns = [("trainer", 1)]
    turns += [(arm, fold) for fold in (*range(1, settings.folds + 1), 0) for arm in ARMS[1:]]
    rows: list[dict[str, Any]] = []
    for arm, fold in [(SIDE_BY_SIDE, 0), *turns, (SIDE_BY_SIDE, 0)]:
        command = [sys.executable, "-m", "lab.benchmarks.speed.kfold", "--arm", arm]
        command += ["--fold", str(fold), "--model", source, "--epochs", str(settings.epochs)]
        command += ["--folds", str(settings.folds)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        rows.append({"arm": arm, "fold": fold} | json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    result = {
        "encoder": encoder_name(source),
        "epochs": settings.epochs,
        "folds": settings.folds,
        "batch_size": 32,
        "threads": torch.get_num_threads(),
    }
    result |= _summary(rows)
    write_result(settings.output, result | {"rows": rows})
    print(result)


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Ratios of time, scores and memory by arm."""
    by_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in (*ARMS, SIDE_BY_SIDE)}
    ours = {row["fold"]: row["seconds"] for row in by_arm["ours"]}
    whole = statistics.mean(row["seconds"] for row in by_arm[SIDE_BY_SIDE])
    scores = {
        arm: statistics.mean(row["macro_f1"] for row in by_arm[arm] if row["fold"]) for arm in ARMS
    }
    ratio = {
        arm: statistics.median(row["seconds"] / ours[row["fold"]] for row in by_arm[arm])
        for arm in ARMS
    }
    gained = sum(ours.values()) / whole
    return {
        "median_ratio": {arm: round(ratio[arm], 2) for arm in ARMS[:-1]},
        "ratio_to_side_by_side": {arm: round(ratio[arm] * gained, 2) for arm in ARMS},
        "mean_macro_f1": {arm: round(score, 4) for arm, score in scores.items()},
        "f1_difference_points": round(100 * (scores["ours"] - scores["trainer-bf16"]), 2),
        "peak_memory_gib": {
            arm: max(row["peak_memory_gib"] for row in mine) for arm, mine in by_arm.items()
        },
    }


def _one_training(settings: KfoldSpeedSettings) -> dict[str, float]:
    examples = read_examples(TASK.data, TASK.label_names, per_label=settings.folds)
    source = encoder_source(settings.model or find_encoder())
    training = plan_training(
        TrainSettings(epochs=settings.epochs, learning_rate=3e-4, layer_decay=1.0),
        hidden_size=256,
        longest_input=TrainSettings.max_length,
        texts=len(examples.texts),
    )
    fold_of = np.array(
        assign_folds(strata_of(examples.task, examples.targets), settings.folds, SEED)
    )
    train = _with_ours if settings.arm in ("ours", SIDE_BY_SIDE) else _with_trainer
    seconds, found = train(examples, source, training, fold_of, settings)
    # Of several processes the one that took the most.
    whose = resource.RUSAGE_CHILDREN if settings.arm == SIDE_BY_SIDE else resource.RUSAGE_SELF
    used = resource.getrusage(whose).ru_maxrss / 2**20
    row = {"seconds": round(seconds, 2), "peak_memory_gib": round(used, 2)}
    if settings.fold:
        truth = examples.targets[fold_of == settings.fold]
        row["macro_f1"] = float(f1_score(truth, found, average="macro"))
    return row


def _experiment(
    examples: Examples,
    source: str,
    training: TrainingPlan,
    fold_of: np.ndarray,
    settings: KfoldSpeedSettings,
) -> Experiment:
    tokenizer = load_encoder_tokenizer(source)
    return Experiment(
        source=source,
        random_weights=False,
        tokenizer=tokenizer,
        data=TrainingData(
            task="single",
            labels=examples.labels,
            tokens=tokenize_all(tokenizer, examples.texts, training.max_length),
            targets=examples.targets,
            strata=strata_of(examples.task, examples.targets),
        ),
        training=training,
        folds=settings.folds,
        fold_of={SEED: fold_of},
    )


def _with_ours(
    examples: Examples,
    source: str,
    training: TrainingPlan,
    fold_of: np.ndarray,
    settings: KfoldSpeedSettings,
) -> tuple[float, np.ndarray]:
    # Tokens: once for all folds in a real run; here they are inside the time of every one.
    began = time.perf_counter()
    experiment = _experiment(examples, source, training, fold_of, settings)
    with tempfile.TemporaryDirectory() as folder:
        if settings.arm == SIDE_BY_SIDE:
            run_jobs(
                experiment,
                Path(folder),
                jobs=torch.get_num_threads(),
                on_fold=lambda fold: None,
                advance=lambda seed, fold, steps: None,
            )
        else:
            run_job(experiment, SEED, settings.fold, Path(folder))
        seconds = time.perf_counter() - began
        if not settings.fold:
            return seconds, np.empty(0)
        with np.load(result_path(Path(folder), SEED, settings.fold)) as result:
            found = result["probabilities"].argmax(axis=1)
    return seconds, found


def _with_trainer(
    examples: Examples,
    source: str,
    training: TrainingPlan,
    fold_of: np.ndarray,
    settings: KfoldSpeedSettings,
) -> tuple[float, np.ndarray]:
    from transformers import Trainer, TrainingArguments

    tokenizer = load_encoder_tokenizer(source)
    began = time.perf_counter()
    model = load_for_classification(source, examples.labels, seed=SEED)
    careful = settings.arm != "trainer"
    if careful:
        model.set_attn_implementation(attention_for(choose_device()))
    encoded = tokenizer(examples.texts, truncation=True, max_length=training.max_length)[
        "input_ids"
    ]
    rows = [
        {"input_ids": ids, "labels": int(label)}
        for ids, label in zip(encoded, examples.targets, strict=True)
    ]
    held_out = np.flatnonzero(fold_of == settings.fold)
    rest = np.flatnonzero(fold_of != settings.fold)  # all of them for fold 0
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=folder,
                num_train_epochs=training.epochs,
                per_device_train_batch_size=training.batch_size,
                learning_rate=training.learning_rate,
                warmup_steps=training.warmup_fraction,
                weight_decay=training.weight_decay,
                seed=SEED,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                use_cpu=not torch.cuda.is_available(),
                bf16=careful,
                train_sampling_strategy="group_by_length" if careful else "random",
                per_device_eval_batch_size=training.batch_size if careful else 8,
            ),
            train_dataset=[rows[place] for place in rest],
            processing_class=tokenizer,
        )
        trainer.train()
        if not settings.fold:
            return time.perf_counter() - began, np.empty(0)
        # Texts grouped by length would be predicted in another order, too.
        trainer.args.train_sampling_strategy = "random"
        found = trainer.predict([rows[place] for place in held_out])  # type: ignore[arg-type]
    return time.perf_counter() - began, np.asarray(found.predictions).argmax(axis=1)


if __name__ == "__main__":
    sys.exit(run_command(KfoldSpeedSettings, main, "Time k-fold beside transformers' Trainer."))
