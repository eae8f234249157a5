"""How fast is k-fold? Beside transformers' Trainer, with its defaults and set up with care.

    python -m benchmarks.speed.kfold

The written memos of the repository, five folds, the same encoder, epochs, batch and learning
rate. Fold by fold the two take turns, each in a process of its own, so that peak memory is each
one's; reading and importing is not in the time. Trainer gets the tokenizer, so it pads to the
longest text of a batch (DataCollatorWithPadding, its default). `trainer` computes in fp32 on a
CPU, as it does by default; `trainer-bf16` in bf16, with texts grouped by length; `trainer-eager`
the same with the attention that trains fastest. Layer-wise decay, which Trainer has not, is off in
all.
"""

import json
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

from benchmarks.quality.downstream import encoder_name
from benchmarks.result_files import write_result
from finetune.data.examples import Examples, read_examples
from finetune.data.folds import assign_folds, strata_of
from finetune.plan import TrainingPlan, plan_training
from finetune.settings import TrainSettings
from finetune.training.cross_validation import Experiment, result_path, run_job
from finetune.training.encoders import (
    encoder_source,
    load_encoder_tokenizer,
    load_for_classification,
)
from finetune.training.fit import TrainingData
from malmoi.command_line import run_command
from malmoi.devices import attention_for, choose_device
from malmoi.inference.batching import tokenize_all
from malmoi.labels.tasks import read_task
from malmoi.model_folders import find_encoder

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parents[1] / "results" / "kfold.json"
SEED = 42
TASK = read_task(ROOT / "corpora" / "memos")
ARMS = ("trainer", "trainer-bf16", "trainer-eager", "ours")


@dataclass(kw_only=True)
class KfoldSpeedSettings:
    """What is trained."""

    model: str | None = None
    """Encoder; by default the newest finished pre-training run, else the smallest released."""
    epochs: int = 5
    """Passes over the training texts."""
    folds: int = 5
    """Folds, each trained by both."""
    arm: str = ""
    """Used by the script itself: train one fold in this process."""
    fold: int = 1
    """With --arm."""
    output: Path = RESULTS
    """JSON file of the results."""


def main(settings: KfoldSpeedSettings) -> None:
    """Take turns, print the table, write the results."""
    if settings.arm:
        print(json.dumps(_one_fold(settings)))
        return
    source = encoder_source(settings.model or find_encoder())
    rows: list[dict[str, Any]] = []
    for fold in range(1, settings.folds + 1):
        for arm in ARMS:
            command = [
                sys.executable,
                "-m",
                "benchmarks.speed.kfold",
                "--arm",
                arm,
                "--fold",
                str(fold),
            ]
            command += ["--model", source, "--epochs", str(settings.epochs)]
            command += ["--folds", str(settings.folds)]
            done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
            rows.append({"arm": arm, "fold": fold} | json.loads(done.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
    by_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in ARMS}
    ratios = {
        arm: statistics.median(
            theirs["seconds"] / ours["seconds"]
            for theirs, ours in zip(by_arm[arm], by_arm["ours"], strict=True)
        )
        for arm in ARMS[:-1]
    }
    differences = [
        ours["macro_f1"] - theirs["macro_f1"]
        for theirs, ours in zip(by_arm["trainer"], by_arm["ours"], strict=True)
    ]
    result = {
        "encoder": encoder_name(source),
        "epochs": settings.epochs,
        "batch_size": 32,
        "threads": torch.get_num_threads(),
        "median_ratio": {arm: round(ratio, 2) for arm, ratio in ratios.items()},
        "mean_macro_f1": {
            arm: round(statistics.mean(row["macro_f1"] for row in mine), 4)
            for arm, mine in by_arm.items()
        },
        "f1_difference_points": round(100 * statistics.mean(differences), 2),
        "peak_memory_gib": {
            arm: max(row["peak_memory_gib"] for row in mine) for arm, mine in by_arm.items()
        },
        "rows": rows,
    }
    write_result(settings.output, result)
    print({key: value for key, value in result.items() if key != "rows"})


def _one_fold(settings: KfoldSpeedSettings) -> dict[str, float]:
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
    train = _with_ours if settings.arm == "ours" else _with_trainer
    seconds, found = train(examples, source, training, fold_of, settings)
    held_out = fold_of == settings.fold
    score = f1_score(examples.targets[held_out], found, average="macro")
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            peak = int(line.split()[1]) / 2**20
    return {
        "seconds": round(seconds, 2),
        "macro_f1": float(score),
        "peak_memory_gib": round(peak, 2),
    }


def _with_ours(
    examples: Examples,
    source: str,
    training: TrainingPlan,
    fold_of: np.ndarray,
    settings: KfoldSpeedSettings,
) -> tuple[float, np.ndarray]:
    tokenizer = load_encoder_tokenizer(source)
    # Once for all folds in a real run; here it is inside the time of every fold.
    began = time.perf_counter()
    tokens = tokenize_all(tokenizer, examples.texts, training.max_length)
    experiment = Experiment(
        source=source,
        random_weights=False,
        tokenizer=tokenizer,
        data=TrainingData(
            task="single",
            labels=examples.labels,
            tokens=tokens,
            targets=examples.targets,
            strata=strata_of(examples.task, examples.targets),
        ),
        training=training,
        folds=settings.folds,
        fold_of={SEED: fold_of},
    )
    with tempfile.TemporaryDirectory() as folder:
        run_job(experiment, SEED, settings.fold, Path(folder))
        seconds = time.perf_counter() - began
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
    if settings.arm == "trainer-eager":
        model.set_attn_implementation(attention_for(choose_device()))
    encoded = tokenizer(examples.texts, truncation=True, max_length=training.max_length)[
        "input_ids"
    ]
    rows = [
        {"input_ids": ids, "labels": int(label)}
        for ids, label in zip(encoded, examples.targets, strict=True)
    ]
    held_out = np.flatnonzero(fold_of == settings.fold)
    rest = np.flatnonzero(fold_of != settings.fold)
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
        # Texts grouped by length would be predicted in another order, too.
        trainer.args.train_sampling_strategy = "random"
        found = trainer.predict([rows[place] for place in held_out])  # type: ignore[arg-type]
    return time.perf_counter() - began, np.asarray(found.predictions).argmax(axis=1)


if __name__ == "__main__":
    sys.exit(run_command(KfoldSpeedSettings, main, "Time k-fold beside transformers' Trainer."))
