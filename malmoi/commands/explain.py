"""`malmoi explain TEXT --model M`: which words of a text carried its label."""

import sys
from dataclasses import dataclass, replace

import tyro

from malmoi.errors import InputError
from malmoi.inference.engine import EngineChoice

ABOUT = (
    "Show which words carried a decision: each is left out once. The number is how much lower the "
    "label's log-odds (or the value) are without the word; below 0 it spoke against the label."
)
_BAR = 20


@dataclass(kw_only=True)
class ExplainSettings:
    """What is explained."""

    text: tyro.conf.Positional[str]
    """The text, or - for standard input."""
    model: str
    """A fine-tuned classifier: name of a run or of a released model, directory, or Hub id."""
    pair: str | None = None
    """The second text, for a model that reads two at a time."""
    label: str | None = None
    """The label to explain; by default the likeliest one."""
    engine: EngineChoice = "auto"
    """What computes; onnx-int8 rounds, which shows in words of little weight."""


def main(settings: ExplainSettings) -> None:
    """Print the label and a line for every word.

    Raises:
        InputError: the text, of a pair both, is empty once it is clean; or the model or the label
            cannot be used.
    """
    from malmoi.inference.classifier import Classifier
    from malmoi.text.cleaning.cleaner import clean_text

    if settings.text == "-":
        try:
            text = sys.stdin.buffer.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(
                "standard input: expected a text in UTF-8, found other bytes ({error}); convert it",
                error=error,
            ) from error
        settings = replace(settings, text=text)
    # As `malmoi predict` leaves such a row without a label.
    if not clean_text(settings.text) and not clean_text(settings.pair or ""):
        raise InputError(
            "expected a text to explain, found one that is empty once it is clean; give one with "
            "words"
        )
    classifier = Classifier.load(settings.model, settings.engine)
    found = classifier.explain(settings.text, settings.pair, label=settings.label)
    print(f"{found.label} {found.score:.3f}")
    if found.predicted != found.label:
        print(f"predicted: {found.predicted or 'none of the labels'}")
    heaviest = max((abs(word.weight) for word in found.words), default=0.0) or 1.0
    for word in found.words:
        length = round(_BAR * abs(word.weight) / heaviest)
        bar = ("+" if word.weight > 0 else "-") * length
        second = "2: " if word.second else ""
        print(f"{word.weight:+7.2f}  {bar:<{_BAR}}  {second}{word.text}")
    if found.cut:
        print("the text has further words, which are not explained")
