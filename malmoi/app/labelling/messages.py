"""What the card sends, checked: it comes from a browser, which may send anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from malmoi.errors import InputError
from malmoi.labels.annotating import Act, ActKind
from malmoi.labels.label_book import ShownLabel
from malmoi.messages import Phrase

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

    @property
    def offer(self) -> str:
        """What the server sealed when it handed the text out; "" for none."""
        return str(self.values.get("offer") or "")

    def act(self) -> Act:
        """The act, of which nobody knows yet what was suggested.

        Raises:
            InputError: a value is not what an act has.
        """
        values = self.values
        kind = _one_of(values, "kind", get_args(ActKind))
        if "sha256" not in values:
            raise InputError(
                "expected an act that says which text was on screen, found one that an earlier "
                "version of the app has kept; look at the text again"
            )
        return Act(
            text_id=_whole(values, "text_id"),
            kind=kind,  # type: ignore[arg-type]
            request_id=self.request_id,
            labels=_labels(values) if kind == "label" else (),
            shown=_text(values, "sha256"),
            flagged=values.get("flagged") is True,
            note=_text(values, "note") if kind == "note" else "",
            withdraws=_text(values, "withdraws") if kind == "undo" else None,
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
        have: id and hash of the texts that it has, in their order.
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
    have: Sequence[tuple[int, str]] = ()
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
    sent = _of_kind(sent, Mapping, Phrase("a message of the card"))
    acts = _of_kind(sent.get("acts"), list, Phrase("a list of acts"))
    if len(acts) > _MOST_ACTS:
        raise InputError(
            "expected up to {most} acts, found {count}", most=_MOST_ACTS, count=len(acts)
        )
    words = sent.get("words")
    have = sent.get("have")
    return Message(
        sequence=_whole(sent, "sequence"),
        scope=_text(sent, "scope"),
        acts=[_sent_act(act) for act in acts],
        wants=sent.get("wants") is True,
        have=[_had(one) for one in have] if isinstance(have, list) else (),
        scores=None if sent.get("scores") is None else _whole(sent, "scores"),
        words=_whole(words, "text_id") if isinstance(words, Mapping) else None,
        recent=sent.get("recent") is True,
        stop=sent.get("stop") is True,
        resume=sent.get("resume") is True,
    )


def _sent_act(values: Any) -> SentAct:
    values = _of_kind(values, Mapping, Phrase("an act"))
    return SentAct(request_id=_text(values, "request_id"), values=values)


def _had(values: Any) -> tuple[int, str]:
    values = _of_kind(values, Mapping, Phrase("a text of the card"))
    return _whole(values, "text_id"), _text(values, "sha256")


def _labels(values: Mapping[str, Any]) -> list[ShownLabel]:
    what = Phrase("a list of labels")
    labels = [_of_kind(one, Mapping, what) for one in _of_kind(values.get("labels"), list, what)]
    return [ShownLabel(_whole(one, "id"), _text(one, "name")) for one in labels]


def _of_kind(value: Any, kinds: Any, what: Phrase) -> Any:
    """The value, where it is what was expected."""
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise InputError("expected {what}, found {kind}", what=what, kind=type(value).__name__)
    return value


def _text(values: Mapping[str, Any], name: str) -> str:
    text: str = _of_kind(values.get(name), str, Phrase("{name} as text", name=name))
    return text


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    # No wider than a database's column.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise InputError(
            "expected {name} as a whole number, found {value!r:.40}", name=name, value=value
        )
    return value


def _number(values: Mapping[str, Any], name: str) -> float | None:
    if (value := values.get(name)) is None:
        return None
    return float(_of_kind(value, int | float, Phrase("{name} as a number", name=name)))


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
