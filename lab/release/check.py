"""The record of a released encoder: what a new run of the recipe is held against."""

import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from malmoi.errors import InputError
from malmoi.pretrain.config import defaults
from malmoi.pretrain.config.defaults import MAX_LENGTH, SEED
from malmoi.pretrain.config.run_plan import RunPlan, plan_from_json
from malmoi.pretrain.config.schema import PretrainKeys
from malmoi.pretrain.resuming import as_given
from malmoi.settings import keys_of, shown
from malmoi.text.corpus.clean_corpus import corpus_hash

# Sums in another order drift apart, and encoders of earlier versions began with skip-gram vectors,
# which were never the same twice (docs/decisions.md). Of 50 losses the mean difference was
# 0.34% on a CPU of another maker, but one of them differed by 3.0%: there the new run, in fp32 and
# in bf16, had a short rise of the loss that the recorded one had not. So the mean is held to a
# limit.
TOLERANCE = 0.01
CHECKED_STEPS = 500
# What a check says itself: on what and from what; and what goes by the machine.
NOT_REPEATED = {"corpus", "tokenizer", "vocab_size", "init", "generator.init", "precision"}
# Skip-gram vectors: what the first released encoders began with.
FROM_NOTHING = (*defaults.FROM_NOTHING, "skip-gram")


def check_corpus(corpus: Path, sha256: str | None, released: Path) -> None:
    """Refuse a clean corpus that is not the released encoder's."""
    if (found := corpus_hash(corpus)) != sha256:
        raise InputError(
            f"expected the clean corpus of {released} (SHA-256 {sha256}), found another ({found}); "
            "of other texts, or cleaned by other versions than constraints.txt has, the recipe can "
            "be run but not checked or gone on with"
        )


Losses = dict[int, dict[str, float]]


def compare_losses(recorded: Losses, found: Losses, steps: int) -> None:
    """Print both side by side, up to a step.

    Raises:
        InputError: one ends before that step, or the losses differ by more than TOLERANCE in the
            mean over all rows.
    """
    common = sorted(step for step in recorded.keys() & found if step <= steps)
    if not common or common[-1] < steps:
        raise InputError(
            f"expected losses up to step {steps} in both, found them up to "
            f"{max(recorded, default=0)} in the record and {max(found, default=0)} in the new run"
        )
    differences = []
    for step in common:
        for name, loss in recorded[step].items():
            again = found[step].get(name, 0.0)
            differences.append(abs(again / loss - 1) if math.isfinite(again) else math.inf)
            print(f"step {step:4}  {name:18}  recorded {loss:7.4f}  found {again:7.4f}")
    mean = statistics.fmean(differences)
    print(f"mean difference {mean:.2%}, largest {max(differences):.2%}")
    if mean > TOLERANCE:
        raise InputError(
            f"expected losses within {TOLERANCE:.0%} of the record in the mean, found {mean:.1%}"
        )


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord:
    """What a check repeats of a released run.

    Attributes:
        flags: of pretrain/run.py, all that are not the defaults of today, save those of
            NOT_REPEATED.
        files: those that its corpus was made from, by name.
    """

    corpus_sha256: str
    flags: list[str]
    tokens: float
    files: list[str]
    losses: Losses


def read_released(released: Path, init: Path | None) -> ReleaseRecord:
    """The released run's record, by which it can be repeated.

    Raises:
        InputError: it lacks something, or the run did not begin as `init` says.
    """
    record = read_json(released / "run.json")
    try:
        plan = plan_from_json(record["plan"], released / "run.json")
        if plan.length.limit != "max_tokens":
            raise ValueError(f"length {plan.length.limit}")
        found = ReleaseRecord(
            corpus_sha256=record["corpus_sha256"],
            flags=_flags_of(plan),
            tokens=plan.length.amount,
            files=files_of(released),
            losses=losses_of(released / "metrics.jsonl"),
        )
        began = plan.start.init
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"expected the records of a released encoder in {released}, found others ({error!r}); "
            "name the folder of the release by --output"
        ) from error
    if not found.losses:
        raise InputError(f"expected losses in {released / 'metrics.jsonl'}, found none")
    if (init is None) != (began in FROM_NOTHING):
        raise InputError(
            f"expected --init as {released} began, with {began}, found {init}; with --check, name "
            "the encoder that it went on from, or none"
        )
    return found


def files_of(released: Path) -> list[str]:
    """Names of the files that a released encoder's corpus was made from.

    Raises:
        InputError: it has no record of its corpus.
    """
    path = released / "corpus.json"
    files = read_json(path).get("sources")
    if not isinstance(files, dict) or not files:
        raise InputError(
            f"expected the files of a released encoder's corpus in {path}, found none; put the "
            "original back"
        )
    return list(files)


def _flags_of(plan: RunPlan) -> list[str]:
    """Flags of pretrain/run.py over the recipe default, which has every default."""
    # The one key of [execution] that counts: the steps whose losses are compared.
    given = as_given(plan) | {"execution.log_steps": plan.execution.log_steps}
    defaults = {name: key.default for name, key in keys_of(PretrainKeys).items()}
    defaults |= {"max_length": MAX_LENGTH, "seed": SEED, "skip_bad_rows": False}
    flags = ["--recipe", "default"]
    flags += ["--init", "random"] if given["init"] == "random" else []
    for name, value in given.items():
        if name in NOT_REPEATED or value is None or value == defaults.get(name):
            continue
        flags += ["--set", shown(name, value)] if "." in name else shown(name, value).split(" ", 1)
    return flags


def losses_of(path: Path) -> Losses:
    """Step to the losses it learns from; a line that is half-written is left out."""
    if not path.is_file():
        return {}
    found: Losses = {}
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        row = json.loads(line)
        names = ("discriminator_loss", "bag_loss", "correction_loss")
        # 0 in older records where it has no weight.
        found[row["step"]] = {name: row[name] for name in names if row.get(name)}
    return found


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        InputError: it is not there, or holds something else.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(
            f"expected {path}, found none; name another folder by --output or --work"
        ) from error
    except ValueError as error:
        raise InputError(
            f"expected JSON in {path}, found {error}; put the original back"
        ) from error
    if not isinstance(found, dict):
        raise InputError(f"expected a JSON object in {path}, found {type(found).__name__}")
    return found
