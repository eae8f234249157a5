"""What trainings begin with: an encoder, the encoder of a classifier, or a classifier as it is."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from malmoi.errors import InputError
from malmoi.finetune.data.examples import Examples
from malmoi.finetune.data.own_test import test_without
from malmoi.finetune.settings import StartKeys
from malmoi.finetune.training.encoders import labels_of
from malmoi.inference.learnt_texts import read_learnt, text_keys
from malmoi.inference.tasks import has_values
from malmoi.model_folders import better_read, encoder_source, find_encoder, is_encoder

_SHOWN_LABELS = 20
# Released encoders. The better one takes three times the time, hours of a laptop with more texts
# than these (docs/decisions/finetune.md).
_FAST, _BETTER, _MOST_FOR_BETTER = "malmoi-small", "malmoi-medium", 10_000


@dataclass(frozen=True, kw_only=True)
class StartingModel:
    """A model on disk or on the Hub.

    Attributes:
        source: what is loaded.
        labels: of a finished classifier; none of an encoder.
        keep_head: go on from the classifier instead of from its encoder.
        learnt: keys of the texts that the classifier has learnt (`learnt_texts`); None where
            it does not say, or where none of its weights are taken.
        advice: a line on why this encoder was taken, or on a better one; "" for none.
    """

    source: str
    labels: list[str]
    keep_head: bool
    learnt: np.ndarray | None
    advice: str = ""

    def has_learnt(self, examples: Examples) -> np.ndarray:
        """Which of the texts it has learnt, bool [N]; none where it does not say."""
        if self.learnt is None:
            return np.zeros(len(examples.texts), dtype=bool)
        return np.isin(text_keys(examples.texts, examples.pairs), self.learnt)


def find_starting_model(model: str | None, start: StartKeys, texts: int) -> StartingModel:
    """What `--model` or `start.continue_from` names, else the newest encoder.

    Without a run of pre-training it is the released one that scores best with so many texts.

    Raises:
        InputError: nothing is there, or no finished classifier where one is gone on from.
    """
    keep_head = start.continue_from is not None
    named = start.continue_from or model
    newest, advice = (None, "") if named or start.random_weights else _newest(texts)
    source = encoder_source(named or str(newest or find_encoder()), start.revision)
    labels = [] if start.random_weights else labels_of(source)
    if keep_head and not labels:
        raise InputError(
            "start.continue_from goes on from a finished classifier, and {source} is an encoder; "
            "give it as --model",
            source=source,
        )
    return StartingModel(
        source=source,
        labels=labels,
        keep_head=keep_head,
        learnt=read_learnt(source) if labels else None,
        advice=advice,
    )


def _newest(texts: int) -> tuple[Path, str]:
    """The newest encoder, or of the released ones that which suits so many texts, and why."""
    encoder = find_encoder()
    better = encoder.with_name(_BETTER)
    if encoder.name != _FAST or not is_encoder(better):
        return encoder, better_read(encoder)
    if texts <= _MOST_FOR_BETTER:
        return better, (
            f"up to {_MOST_FOR_BETTER:,} texts {_BETTER} is taken: of 1,000 it learnt 4 points "
            f"more than {_FAST} (without linear parts), in three times the time (--model {_FAST})"
        )
    return encoder, (
        f"beyond {_MOST_FOR_BETTER:,} texts {_FAST} is taken, for its speed; {_BETTER} has a point "
        f"more, in three times the time (--model {_BETTER})"
    )


def without_learnt(examples: Examples, starting: StartingModel, per_label: int) -> Examples:
    """The texts that a classifier which is gone on from has not learnt.

    Raises:
        InputError: too few are left of a label.
    """
    if not starting.keep_head:
        return examples
    if examples.own_test is not None and starting.learnt is not None:
        # What is left of it once the classifier is trained; said before it takes hours.
        test_without(starting.learnt, examples.own_test.examples, starting.source)
    learnt = starting.has_learnt(examples)
    left = examples.only(np.flatnonzero(~learnt))
    few = [label for label, count in left.counts.items() if count < per_label]
    if learnt.any() and (few or len(left.texts) < per_label):
        raise InputError(
            "{source} has learnt {learnt:,} of the {texts:,} texts of {path}, which a score on "
            "them would only repeat; of the others {few} are fewer than {per_label}, one a fold: "
            "add texts that it has not learnt, or begin with an encoder by --model",
            source=starting.source,
            learnt=learnt.sum(),
            texts=len(learnt),
            path=examples.path,
            few=", ".join(few[:_SHOWN_LABELS]) or "there",
            per_label=per_label,
        )
    return left


def describe_starting_model(
    starting: StartingModel, examples: Examples, left_out: int
) -> list[str]:
    """Lines on what is taken, whether another encoder is better, and scores are to be trusted.

    Args:
        examples: that are trained and tested on.
        left_out: how many of the data are not, for the classifier has learnt them.
    """
    if not starting.labels:
        return [starting.advice] if starting.advice else []
    source = starting.source
    unknown = f"warning: {source} does not list the texts that it has learnt; if some are among "
    unknown += "these, the scores are too high"
    if starting.keep_head:
        lines = [f"going on from the classifier {source}, with its head"]
        if starting.learnt is None:
            return [*lines, unknown]
        if left_out:
            lines.append(f"left out {left_out:,} texts that it has learnt")
        dropped = [label for label in starting.labels if label not in examples.labels]
        if dropped and not has_values(examples.task):
            lines.append(f"its labels {', '.join(dropped)} are not in the data and are left out")
        return lines
    lines = [
        f"{source} is a finished classifier: its encoder is taken and its head left out, which is "
        "new (--set start.continue_from=CLASSIFIER keeps it)"
    ]
    if starting.learnt is None:
        return [*lines, unknown]
    if known := int(starting.has_learnt(examples).sum()):
        lines.append(
            f"warning: its encoder has learnt {known:,} of these {len(examples.texts):,} texts "
            "with their labels, so the scores are too high; begin with one that has not"
        )
    return lines
