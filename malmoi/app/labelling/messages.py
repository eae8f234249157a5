"""What the card sends, checked: it comes from a browser, which may send anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from malmoi.errors import InputError
from malmoi.labels.annotating import Act, ActKind, Suggestion

_MOST_ACTS = 500


@dataclass(frozen=True, kw_only=True)
class SentAct:
    """An act as it was sent.

    Attributes:
        request_id: of `values`; what the card knows it by.
        values: all of it, unchecked.
    """

    request_id: str
    values: Mapping[str, Any]

    @property
    def again(self) -> bool:
        """Whether the text had a label of this annotator before."""
        return self.values.get("again") is True

    @property
    def alike(self) -> bool:
        """Whether the texts that are nearly the same are to get the same."""
        return self.values.get("alike") is True

    @property
    def takes_label_back(self) -> bool:
        """Whether it is the undo of a label."""
        return self.values.get("kind") == "undo" and self.values.get("of") == "label"

    def act(self) -> Act:
        """The act.

        Raises:
            InputError: a value is not what an act has.
        """
        values = self.values
        kind = _one_of(values, "kind", get_args(ActKind))
        return Act(
            text_id=_whole(values, "text_id"),
            kind=kind,  # type: ignore[arg-type]
            request_id=self.request_id,
            labels=_texts(values, "labels") if kind == "label" else (),
            flagged=values.get("flagged") is True,
            note=_text(values, "note") if kind == "note" else "",
            withdraws=_text(values, "withdraws") if kind == "undo" else None,
            suggestion=_suggestion(values.get("suggestion")),
            seconds=_number(values, "seconds"),
            guideline_version=_whole(values, "guideline_version"),
        )


@dataclass(frozen=True, kw_only=True)
class Message:
    """One message of the card.

    Attributes:
        sequence: its number, which the answer repeats.
        scope: for which project and person the acts were done.
        acts: that it knows no acknowledgement of, in their order.
        wants: whether texts are asked for, or their leases are to be renewed.
        have: ids of the texts that it has, in their order.
        scores: the version of the model's order that they came in; None: of no model.
        words: the text of which the words are asked for.
        recent: whether the annotator's last work is asked for.
        stop: whether all leases are given back.
        resume: whether work goes on after that.
    """

    sequence: int
    scope: str
    acts: Sequence[SentAct] = ()
    wants: bool = False
    have: Sequence[int] = ()
    scores: int | None = None
    words: int | None = None
    recent: bool = False
    stop: bool = False
    resume: bool = False


def read_message(sent: Any) -> Message:
    """The message.

    Raises:
        InputError: it is none.
    """
    if not isinstance(sent, Mapping):
        raise InputError("expected a message of the card, found {kind}", kind=type(sent).__name__)
    acts = sent.get("acts")
    if not isinstance(acts, list) or len(acts) > _MOST_ACTS:
        raise InputError("expected a list of up to {most} acts", most=_MOST_ACTS)
    words = sent.get("words")
    have = sent.get("have")
    return Message(
        sequence=_whole(sent, "sequence"),
        scope=_text(sent, "scope"),
        acts=[_sent_act(act) for act in acts],
        wants=sent.get("wants") is True,
        have=tuple(one for one in have if isinstance(one, int)) if isinstance(have, list) else (),
        scores=None if sent.get("scores") is None else _whole(sent, "scores"),
        words=_whole(words, "text_id") if isinstance(words, Mapping) else None,
        recent=sent.get("recent") is True,
        stop=sent.get("stop") is True,
        resume=sent.get("resume") is True,
    )


def _sent_act(values: Any) -> SentAct:
    if not isinstance(values, Mapping):
        raise InputError("expected an act, found {kind}", kind=type(values).__name__)
    return SentAct(request_id=_text(values, "request_id"), values=values)


def _suggestion(shown: Any) -> Suggestion | None:
    if shown is None:
        return None
    if not isinstance(shown, Mapping):
        raise InputError("expected a suggestion, found {kind}", kind=type(shown).__name__)
    score = _number(shown, "score")
    if score is None:
        raise InputError("expected the score of a suggestion, found none")
    return Suggestion(label=_text(shown, "label"), score=score, model=_text(shown, "model"))


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise InputError(
            "expected {name} as text, found {kind}", name=name, kind=type(value).__name__
        )
    return value


def _texts(values: Mapping[str, Any], name: str) -> list[str]:
    value = values.get(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InputError(
            "expected {name} as a list of texts, found {kind}", name=name, kind=type(value).__name__
        )
    return value


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    # No wider than a database's column.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise InputError(
            "expected {name} as a whole number, found {value!r:.40}", name=name, value=value
        )
    return value


def _number(values: Mapping[str, Any], name: str) -> float | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InputError(
            "expected {name} as a number, found {kind}", name=name, kind=type(value).__name__
        )
    return float(value)


def _one_of(values: Mapping[str, Any], name: str, known: Sequence[str]) -> str:
    value = values.get(name)
    if value not in known:
        raise InputError(
            "expected {name} as one of {known}, found {value!r:.40}",
            name=name,
            known=", ".join(known),
            value=value,
        )
    return str(value)
