"""Fine-tune a classifier and say how good it is: k-fold, then once more on all the data.

python finetune/kfold.py --labels 꿈,일기,일정,메모,오류
"""

import hashlib
import json
import sys
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from corpora.atomic import directory_at_once
from corpora.command_line import run_command
from corpora.errors import InputError
from corpora.near_duplicates import DEFAULT_THRESHOLD
from corpora.work_folder import work_folder, worth_keeping
from finetune.baselines import Baseline
from finetune.batches import tokenize_all
from finetune.comparison import (
    calibrate,
    compare,
    measure_learning_curve,
    save_temperature,
    write_page,
)
from finetune.cross_validation import (
    MODEL,
    CrossValidation,
    Experiment,
    FoldResult,
    model_facts,
    result_path,
)
from finetune.encoders import (
    encoder_source,
    find_encoder,
    load_encoder_tokenizer,
    load_for_classification,
)
from finetune.examples import Examples, parse_labels, read_examples
from finetune.fold_processes import run_jobs
from finetune.folds import assign_folds, near_duplicate_groups, strata_of
from finetune.labelled_rows import RowFormat
from finetune.learning_curve import CurvePoint
from finetune.llm_baseline import LlmSettings, check_llm
from finetune.model_files import longest_input
from finetune.output import (
    check_free,
    fold_table,
    package_versions,
    pooled_scores,
    write_predictions,
    write_report,
)
from finetune.progress import training_progress
from finetune.subword_dropout import word_pieces_of
from finetune.tasks import REGRESSION_LABELS, Task, main_score, score_name
from finetune.training import TrainingData, TrainSettings
from pretrain.devices import choose_device

ABOUT = """Measure an encoder on labelled texts by stratified k-fold (macro F1), then train on all
of them and save the classifier to runs/finetune/. A run that was stopped goes on from its finished
folds when the same command is given again."""

# The labelled samples that the project carries, found by their labels.
OWN_DATA: dict[frozenset[str], Path] = {
    frozenset({"꿈", "일기", "일정", "메모", "오류"}): Path("corpora/memos"),
    frozenset({"긍정", "부정", "중립"}): Path("corpora/reviews"),
}
_RUNS = Path("runs", "finetune")


@dataclass(kw_only=True)
class KfoldSettings(TrainSettings):
    """What to train, on what, how often."""

    labels: str | None = None
    """Label names with commas between them; they must be those of the data. By default all that
    --data has."""
    data: Path | None = None
    """File or folder of labelled texts, or the app's label database (SQLite); by default the sample
    that has these labels."""
    task: Task = "single"
    """`single`: one label a text. `multi`: any number of labels, each with a threshold that is
    chosen on texts kept out of training. `pair`: one label for two texts. `pair-regression`: a
    number for two texts."""
    model: str | None = None
    """Encoder: directory, pre-training run or Hub id; by default the newest finished run,
    else the released one."""
    folds: int = 5
    """Parts that the texts are split into; each is predicted by a model trained on the others."""
    seeds: int = 1
    """Repeat everything with so many seeds: --seed, --seed + 1, ..."""
    group_near_duplicates: bool = False
    """Keep texts that nearly equal each other in one fold (MinHash of character 3-grams)."""
    near_duplicate_threshold: float | None = None
    """Similarity (Jaccard) from which texts are near duplicates, 0.7 to 1; by default 0.8."""
    jobs: int = 1
    """Trainings side by side, in so many processes; the threads, or the GPUs, are shared out. The
    number of threads may change the last digits of the scores."""
    output: Path | None = None
    """Folder for the run; by default runs/finetune/ with the data's name and the time."""
    text_column: str | None = None
    """Column of the texts, if it has an unusual name."""
    pair_column: str | None = None
    """Column of the second text of a pair; by default sentence2, question2 or pair."""
    label_column: str | None = None
    """Column of the labels, if it has an unusual name."""
    label_separator: str = ","
    """What stands between the labels of one cell, for `multi`."""
    ignore_ids: bool = False
    """Number the rows instead of taking the column `id`, which may then repeat itself."""
    baselines: bool = False
    """Measure simpler classifiers, the same encoder from random weights and, with --llm.model, a
    chat model in the same folds (--task single)."""
    learning_curve: bool = False
    """Train the first fold on an eighth, a quarter and a half of its texts too (--task single)."""
    llm: LlmSettings = field(default_factory=LlmSettings)
    """The chat model to compare with."""
    random_weights: bool = False
    """Start from random weights instead: the baseline that shows what pre-training adds."""

    def check(self) -> None:
        """As `TrainSettings.check`, and what only k-fold has."""
        super().check()
        self.check_task(self.task)
        for flag, value, least in (
            ("--folds", self.folds, 2),
            ("--seeds", self.seeds, 1),
            ("--jobs", self.jobs, 1),
        ):
            if value < least:
                raise InputError(f"expected {flag} at least {least}, found {value}")
        if self.seed + self.seeds > 2**32:
            raise InputError(f"expected --seed + --seeds up to 4294967296, found {self.seed} + ...")
        if self.near_duplicate_threshold is not None and not self.group_near_duplicates:
            raise InputError(
                "--near-duplicate-threshold says what --group-near-duplicates groups; add that or "
                "leave it out"
            )
        # Refuses a second text where the task has one.
        RowFormat(task=self.task, pair_column=self.pair_column)
        if self.label_separator != "," and self.task != "multi":
            raise InputError(
                f"--label-separator is for several labels in a cell, and --task {self.task} has "
                "one; leave it out or give --task multi"
            )
        if not self.label_separator.strip(" "):
            raise InputError("expected characters other than blanks in --label-separator")
        if self.task == "pair-regression" and self.labels is not None:
            raise InputError(
                "--labels names labels, and --task pair-regression has values; leave it out"
            )
        for flag, given in (
            ("--baselines", self.baselines),
            ("--learning-curve", self.learning_curve),
        ):
            if given and self.task != "single":
                raise InputError(
                    f"{flag} is for one label a text, and --task is {self.task}; leave it out"
                )
        if self.llm.model is None and self.llm != LlmSettings():
            raise InputError("--llm.model names the chat model that --llm flags are for; add it")
        if self.llm.model is not None:
            if not self.baselines:
                raise InputError("--llm.model is one of the baselines; add --baselines")
            self.llm.check()
        if self.data is None and (self.task != "single" or self.labels is None):
            raise InputError(
                "expected labelled texts, found neither --data nor --labels of a sample that the "
                "project carries; give --data"
                if self.labels is None
                else f"--task {self.task} has no sample in the project; give --data"
            )


def main(settings: KfoldSettings) -> None:
    """Check everything, cross-validate, train on all texts, and save the run.

    Raises:
        InputError: what was given cannot be used; nothing is written then.
    """
    started = time.monotonic()
    settings.check()
    device = choose_device(settings.device)
    labels = None if settings.labels is None else parse_labels(settings.labels)
    path = settings.data or _own_data(labels or [])
    if settings.output is not None:
        check_free(settings.output)
    examples = read_examples(
        path,
        labels,
        text_column=settings.text_column,
        label_column=settings.label_column,
        per_label=settings.folds,
        task=settings.task,
        pair_column=settings.pair_column,
        label_separator=settings.label_separator,
        ignore_ids=settings.ignore_ids,
    )
    if settings.llm.model is not None:
        check_llm(settings.llm, examples.labels)
    experiment, untrained = _prepare(examples, settings)
    _print_header(examples, experiment, untrained, settings)
    plan = _plan(examples, experiment, untrained, settings, device.type)
    del untrained
    output = settings.output or _unfinished(plan) or _new_run(path)
    check_free(output)
    with work_folder(output, plan) as work:
        result = _train(experiment, work, settings.jobs)
        with worth_keeping():
            print(fold_table(result), flush=True)
            report = _report(examples, result, experiment, settings, model_facts(work))
            baselines: list[Baseline] = []
            curve: list[CurvePoint] = []
            if settings.baselines:
                baselines, summaries = compare(examples, experiment, result, work, settings.llm)
                report["baselines"] = summaries
            if settings.learning_curve:
                print("learning curve of the first fold", flush=True)
                curve = measure_learning_curve(experiment, result, work)
                report["learning_curve"] = [asdict(point) for point in curve]
            calibration = calibrate(result) if settings.task == "single" else None
            if calibration is not None:
                report["calibration"] = calibration.describe()
            with directory_at_once(output) as scratch:
                write_predictions(scratch / "predictions.csv", examples, result)
                report["seconds"] = round(time.monotonic() - started, 1)
                write_report(scratch / "report.json", report)
                if calibration is not None:
                    write_page(
                        scratch / "report.html",
                        examples,
                        result,
                        baselines=baselines,
                        curve=curve,
                        settings=report["settings"] | {"model": experiment.source},
                        environment=package_versions() | {"device": device.type},
                    )
                    save_temperature(work / MODEL, calibration.temperature)
                check_free(output)  # hours have passed
                (work / MODEL).rename(scratch / "model")
    if calibration is not None:
        print(f"report: {output / 'report.html'}")
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
    run = _RUNS / name
    number = 1
    # Of two runs that begin in one second, the later must not take the other's folds for its own.
    while run.exists() or run.with_name(f".{run.name}.work").exists():
        number += 1
        run = _RUNS / f"{name}-{number}"
    return run


def _unfinished(plan: dict[str, Any]) -> Path | None:
    """The output of a run with the very same plan that was stopped."""
    for work in sorted(_RUNS.glob(".*.work")):
        try:
            found = json.loads((work / "plan.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if found == json.loads(json.dumps(plan)):
            return work.with_name(work.name.removeprefix(".").removesuffix(".work"))
    return None


def _prepare(examples: Examples, settings: KfoldSettings) -> tuple[Experiment, PreTrainedModel]:
    """Everything that the trainings share, and an untrained model of the first seed."""
    source = encoder_source(settings.model or find_encoder())
    tokenizer = load_encoder_tokenizer(source)
    model = load_for_classification(
        source,
        examples.labels,
        dropout=settings.dropout,
        seed=settings.seed,
        random_weights=settings.random_weights,
        tokenizer=tokenizer,
        task=settings.task,
    )
    own = {field.name: getattr(settings, field.name) for field in fields(TrainSettings)}
    training = TrainSettings(**own).resolved(
        int(getattr(model.config, "hidden_size", 0)), random_weights=settings.random_weights
    )
    training.max_length = min(training.max_length, longest_input(model, tokenizer))
    # The tokenizer remembers the length for later predictions.
    tokenizer.model_max_length = training.max_length
    tokens = tokenize_all(tokenizer, examples.texts, training.max_length, pairs=examples.pairs)
    strata = strata_of(examples.task, examples.targets)
    groups = _groups(examples, settings)
    seeds = range(settings.seed, settings.seed + settings.seeds)
    experiment = Experiment(
        source=source,
        random_weights=settings.random_weights,
        tokenizer=tokenizer,
        data=TrainingData(
            task=settings.task,
            labels=examples.labels,
            tokens=tokens,
            targets=examples.targets,
            strata=strata,
            groups=groups,
            word_pieces=word_pieces_of(tokenizer) if training.subword_dropout else None,
        ),
        settings=training,
        folds=settings.folds,
        fold_of={
            seed: np.array(assign_folds(strata, settings.folds, seed, groups)) for seed in seeds
        },
    )
    _check_folds(experiment, examples)
    return experiment, model


def _groups(examples: Examples, settings: KfoldSettings) -> np.ndarray | None:
    if not settings.group_near_duplicates:
        return None
    texts = examples.texts
    if examples.pairs is not None:
        texts = [f"{text} {pair}" for text, pair in zip(texts, examples.pairs, strict=True)]
    threshold = settings.near_duplicate_threshold
    return near_duplicate_groups(texts, DEFAULT_THRESHOLD if threshold is None else threshold)


def _check_folds(experiment: Experiment, examples: Examples) -> None:
    """Refuse folds that groups leave without texts, or without a label to train on."""
    strata = experiment.data.strata
    for fold_of in experiment.fold_of.values():
        for fold in range(1, experiment.folds + 1):
            rest = strata[fold_of != fold]
            if len(rest) == len(strata) or (
                examples.task in ("single", "pair") and len(np.unique(rest)) < len(examples.labels)
            ):
                raise InputError(
                    f"the near duplicates of {examples.path} form groups too large for "
                    f"{experiment.folds} folds: fold {fold} would leave nothing to predict or a "
                    "label without training texts; lower --folds, raise "
                    "--near-duplicate-threshold or remove the copies"
                )


def _print_header(
    examples: Examples, experiment: Experiment, model: PreTrainedModel, settings: KfoldSettings
) -> None:
    counts = ", ".join(f"{label} {count:,}" for label, count in examples.counts.items())
    what = "texts" if examples.pairs is None else "pairs"
    shown = f" ({counts})" if counts else ""
    print(f"data: {examples.path}, {len(examples.texts):,} {what}{shown}")
    training = experiment.settings
    for reason, count in (
        (f"left out {{:,}} repeated {what}", examples.repeats),
        (f"left out {{:,}} {what} that are empty after cleaning", examples.empty),
        (
            f"warning: left out {{:,}} {what} with another label than before",
            examples.contradictions,
        ),
        (
            f"{{:,}} {what} are longer than {training.max_length} tokens; the rest of them is cut "
            "off",
            experiment.data.tokens.cut,
        ),
    ):
        if count:
            print(reason.format(count))
    groups = experiment.data.groups
    if groups is not None:
        sizes = np.bincount(groups)
        print(
            f"near duplicates: {sizes[sizes > 1].sum():,} {what} in {(sizes > 1).sum():,} groups, "
            "each in one fold"
        )
    millions = sum(parameter.numel() for parameter in model.parameters()) / 1e6
    weights = ", random weights" if settings.random_weights else ""
    print(f"model: {experiment.source} ({millions:.1f} million parameters{weights})")
    shown = ", ".join(f"{name} {value}" for name, value in asdict(training).items())
    print(f"settings: folds {settings.folds}, {shown}", flush=True)


def _plan(
    examples: Examples,
    experiment: Experiment,
    untrained: PreTrainedModel,
    settings: KfoldSettings,
    device: str,
) -> dict[str, Any]:
    """All that the numbers depend on; finished folds of a run with an equal plan are kept."""
    weights = hashlib.sha256()
    for name, value in sorted(untrained.state_dict().items()):
        weights.update(name.encode())
        weights.update(value.contiguous().numpy().data)
    folds = hashlib.sha256(b"".join(part.tobytes() for part in experiment.fold_of.values()))
    training = asdict(experiment.settings) | {"device": device}
    return {
        "data": examples.sha256,
        "labels": examples.labels,
        "task": settings.task,
        "weights": weights.hexdigest(),
        "random_weights": settings.random_weights,
        "tokens": hashlib.sha256(experiment.data.tokens.flat.data).hexdigest(),
        "folds": folds.hexdigest(),
        "seeds": list(experiment.fold_of),
        "grouped": settings.group_near_duplicates,
        "settings": training,
        "versions": package_versions(),
    }


def _train(experiment: Experiment, work: Path, jobs: int) -> CrossValidation:
    """Do what is left to do of all trainings, and say how each fold went."""
    task = experiment.data.task
    several = len(experiment.fold_of) > 1
    finished = sum(result_path(work, *job).exists() for job in experiment.jobs)
    if finished:
        print(
            f"going on with a run that was stopped: {finished} of {len(experiment.jobs)} trainings "
            "are done",
            flush=True,
        )

    def on_fold(fold: FoldResult) -> None:
        if several and fold.fold == 1:
            print(f"seed {fold.seed}:")
        print(
            f"{score_name(task)} for fold {fold.fold}: {fold.scores[main_score(task)]:.4f}",
            flush=True,
        )

    with training_progress(sum(experiment.steps(*job) for job in experiment.jobs)) as advance:

        def count(seed: int, fold: int, steps: int) -> None:
            name = f"fold {fold}" if fold else "all texts"
            advance(f"seed {seed}, {name}" if several and fold else name, steps)

        results = run_jobs(experiment, work, jobs=jobs, on_fold=on_fold, advance=count)
    result = CrossValidation(
        task=task,
        labels=experiment.data.labels,
        targets=experiment.data.targets,
        folds=experiment.folds,
        seeds=tuple(experiment.fold_of),
        results=results,
    )
    print(
        f"Average {score_name(task)}: {result.summary.mean:.4f} "
        f"(standard deviation {result.summary.sd:.4f})",
        flush=True,
    )
    return result


def _report(
    examples: Examples,
    result: CrossValidation,
    experiment: Experiment,
    settings: KfoldSettings,
    facts: dict[str, Any],
) -> dict[str, Any]:
    score = "spearman" if examples.task == "pair-regression" else "f1"
    return {
        "task": examples.task,
        "labels": [] if examples.labels == REGRESSION_LABELS else examples.labels,
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
            "cut_to_max_length": experiment.data.tokens.cut,
        },
        "model": experiment.source,
        "random_weights": settings.random_weights,
        "settings": {
            "folds": settings.folds,
            "seeds": list(result.seeds),
            "group_near_duplicates": settings.group_near_duplicates,
            "near_duplicate_threshold": settings.near_duplicate_threshold,
            "jobs": settings.jobs,
            **asdict(experiment.settings),
        },
        f"mean_{score}": result.summary.mean,
        f"sd_{score}": result.summary.sd,
        "interval_95": [result.summary.low, result.summary.high],
        "folds": [
            {
                "seed": fold.seed,
                "fold": fold.fold,
                "texts": len(fold.places),
                "epochs": fold.epochs,
                "best_epoch": fold.best_epoch,
                "seconds": round(fold.seconds, 1),
                **fold.scores,
            }
            for fold in result.results
        ],
        "pooled": pooled_scores(result),
        "final_training": facts,
    }


if __name__ == "__main__":
    sys.exit(run_command(KfoldSettings, main, ABOUT))
