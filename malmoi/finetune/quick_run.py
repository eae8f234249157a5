"""A run of the linear model alone, beside an encoder that is not trained: without torch."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from malmoi.errors import InputError
from malmoi.finetune.evaluation.fold_results import CrossValidation
from malmoi.finetune.plan import plan_quick
from malmoi.finetune.report.files import check_free
from malmoi.finetune.report.terminal import print_absent_labels, print_data, print_scores
from malmoi.finetune.report.write import Measured, complete_model
from malmoi.finetune.run_config import KfoldConfig
from malmoi.finetune.run_texts import data_plan, model_name, read_texts, split_texts
from malmoi.finetune.runner import FittedRun, new_run
from malmoi.inference.learnt_texts import read_learnt
from malmoi.inference.linear.frozen_encoder import FrozenEncoder, encoders_at_hand
from malmoi.inference.linear.quick import QuickTrainer
from malmoi.inference.processor import has_gpu
from malmoi.inference.tokenizing import MANY_UNKNOWN, TextTokenizer, unread_words
from malmoi.inference.vectors.sentence_encoder import find_sentence_encoder
from malmoi.model_folders import encoder_source
from malmoi.progress import shown_progress

# 5,149 memos: macro F1 91.9 with sentence vectors and 91.5 without, in 3.5 times the time.
_MOST_WITH_VECTORS = 3_000


@contextmanager
def fit_linear_alone(config: KfoldConfig) -> Iterator[FittedRun]:
    """Fit the linear model in each fold, and train no encoder: that takes seconds."""
    started = time.monotonic()
    flags = config.flags
    output = flags.output or new_run(config.source.place)
    check_free(output)
    examples, notes = read_texts(config)
    encoders = _frozen_encoders(config)
    plan = plan_quick(config, data_plan(examples), device=_device(flags.device))
    split = split_texts(examples, plan.folds)
    print_data(examples, split)
    print_absent_labels(split, examples)
    at_hand = "an encoder" if len(encoders) == 1 else f"the best of {len(encoders)} encoders"
    print(f"model: linear, beside it {at_hand}, not trained" if encoders else "model: linear")
    # Of more texts they say little that the others do not, and take longer than all else.
    has_few = len(examples.texts) <= _MOST_WITH_VECTORS
    wanted = config.keys.linear.frozen_encoder and has_few
    sentences = find_sentence_encoder() if wanted else None
    print(f"reading the texts and fitting in {flags.folds} folds, then on all texts", flush=True)
    with shown_progress("fits") as progress:
        found = QuickTrainer(encoders, sentences=sentences, morphemes=plan.linear.morphemes).fit(
            examples.texts,
            [examples.labels[label] for label in examples.targets],
            fold_of=split.fold_of[flags.seed],
            label_names=examples.labels,
            seed=flags.seed,
            progress=progress,
        )
    seconds = (time.monotonic() - started) / flags.folds
    result = CrossValidation.of_one_fit(
        examples.labels, examples.targets, flags.seed, found.fold_of, found.probabilities, seconds
    )
    chosen = None
    if found.encoder is not None:
        chosen = model_name(flags.model or "", str(found.encoder.source))
        print(f"encoder: {chosen}")
        _print_unread(chosen, found.encoder.tokenizer, examples.texts)
    plan = replace(plan, encoder=chosen)
    weights = ", ".join(f"{part} {weight:.2f}" for part, weight in found.weights.items())
    print(f"parts and their weights: {weights}")
    if sentences is not None and "sentences" in found.weights:
        _print_unread(sentences.folder.name, sentences.tokenizer, examples.texts)
    print_scores(result, weighted=plan.weighted)
    measured = Measured(
        plan=plan,
        examples=examples,
        split=split,
        reading=notes.as_json(),
        result=result,
        final_training={"weights": found.weights},
    )

    def put_model(place: Path) -> None:
        found.save(place)
        before = None if found.encoder is None else read_learnt(found.encoder.source)
        complete_model(place, measured, before)

    yield FittedRun(output=output, measured=measured, put_model=put_model)


def _frozen_encoders(config: KfoldConfig) -> list[FrozenEncoder]:
    """What `--model` names, else those at hand; [] where there is or shall be none."""
    named, keys = config.flags.model, config.keys
    if keys.linear.frozen_encoder:
        if named is None:
            return encoders_at_hand()
        return [FrozenEncoder.load(Path(encoder_source(named, keys.start.revision)))]
    if named is not None:
        raise InputError(
            "--model names an encoder, and linear.frozen_encoder=false goes without; leave one out"
        )
    return []


def _print_unread(name: str, tokenizer: TextTokenizer, texts: Sequence[str]) -> None:
    """Warn where an encoder knows no letter of many words."""
    share, word = unread_words(tokenizer, texts)
    if share >= MANY_UNKNOWN:
        print(
            f"warning: {name} knows no letter of {share:.0%} of the words, such as {word[:30]}: "
            "is it of this language?",
            file=sys.stderr,
            flush=True,
        )


def _device(name: str) -> str:
    """The type of the device that an encoder is read on."""
    if name == "auto":
        return "cuda" if has_gpu() else "cpu"
    from malmoi.devices import choose_device  # seconds: torch

    return choose_device(name).type
