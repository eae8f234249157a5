"""The server's side of the card: saves what was done, hands out what comes next."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from malmoi.app.explanation import for_visitors
from malmoi.app.labelling.messages import Message, SentAct
from malmoi.app.labelling.offers import Offers
from malmoi.app.labelling.presence import on_screens
from malmoi.errors import InputError
from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act, Suggestion, own_work, save_acts
from malmoi.labels.exporting import first_sources
from malmoi.labels.leasing import (
    LeasedText,
    count_held_by_others,
    count_left,
    lease_texts,
    order_and_hold,
    return_leases,
)
from malmoi.labels.near_duplicates import acts_of_alike
from malmoi.labels.people import AccessError
from malmoi.labels.projects import read_project
from malmoi.labels.scores import scores_version
from malmoi.labels.stored_text import sha256_of

# Texts that the browser holds.
MOST_TEXTS = 100
# Those of them that stay as they are where a model has found a new order: the next few may have
# been labelled already while the answer is on its way.
KEPT = 5
# Decisions of one's own that can be looked at and changed on the card (assumption: as many as one
# scrolls through; older ones are found on the page 살펴보기).
_RECENT = 30
# What the key for undo reaches after a reload (assumption: a day of work).
_UNDONE_WITHIN = timedelta(hours=12)
# Characters of a cell beside a text: what is longer is no product and no grade.
_LONGEST_CELL = 100


@dataclass(kw_only=True)
class CardAnswer:
    """What the card is told.

    Attributes:
        sequence: of the message; None where nobody asked.
        saved: request ids of acts that are in the database for good.
        refused: those that can never be, with why.
        failed: why nothing could be done now, so that the card keeps its acts; None: it could.
        held: ids of all texts that are the annotator's; None where they were not asked for.
        texts: those of them that the card does not have; all, where it has a new order.
        more: whether others than these are left for the annotator.
        others: how many texts are on other people's screens; None where some are left.
        scores: the version of the model's order that they came in; None: as it was, or none.
        renewed: whether the card is to forget all texts but the first that it has.
        stopped: whether they were given back.
        recent: the annotator's last work; None where it was not asked for.
        past: what of it can be undone by a card that was loaded anew, oldest first.
        labels: how many labels more the annotator has now, among what was saved.
    """

    sequence: int | None = None
    saved: list[str] = field(default_factory=list)
    refused: list[dict[str, str]] = field(default_factory=list)
    failed: str | None = None
    held: list[int] | None = None
    texts: list[dict[str, Any]] = field(default_factory=list)
    more: bool = False
    others: int | None = None
    scores: int | None = None
    renewed: bool = False
    stopped: bool = False
    recent: list[dict[str, Any]] | None = None
    past: list[dict[str, Any]] | None = None
    labels: int = 0


def answer(
    access: ProjectAccess, message: Message, *, stopped: bool = False, columns: Sequence[str] = ()
) -> CardAnswer:
    """Do what a message asks for; what cannot be done is told in the answer.

    Args:
        access: of the annotator.
        message: of their card.
        stopped: whether they have stopped, so that no text is handed out until they go on.
        columns: of the files, that are shown with a text.
    """
    given = CardAnswer(sequence=message.sequence, stopped=stopped and not message.resume)
    try:
        _save(access, message.acts, given)
        if message.stop:
            return_leases(access)
            given.stopped = True
        elif not given.stopped:
            _hand_out_anew(access, given, message, columns)
        if message.recent:
            given.recent = _own_work(access)
    except InputError as error:
        given.failed = for_visitors(error)
    return given


def answer_first(
    access: ProjectAccess, *, stopped: bool = False, columns: Sequence[str] = ()
) -> CardAnswer:
    """What a card is told that was loaded just now; arguments as of `answer`."""
    given = CardAnswer(stopped=stopped)
    try:
        given.past = _own_work(access, within=_UNDONE_WITHIN)[::-1]
        given.recent = _own_work(access)
        if not stopped:
            hand_out(access, given, columns=columns)
    except InputError as error:
        given.failed = for_visitors(error)
    return given


def _own_work(access: ProjectAccess, **bounds: timedelta) -> list[dict[str, Any]]:
    works = []
    for one in own_work(access, limit=_RECENT, **bounds):
        comments = [
            {"person": note.person, "text": note.text, "at": note.written_at.isoformat()}
            for note in one.comments
        ]
        answered = bool(comments) and comments[-1]["person"] != access.person.name
        work = asdict(one) | {"sha256": sha256_of(one.text), "comments": comments}
        # After an answer a note is another one.
        works.append(work | {"answered": answered} | ({"note": ""} if answered else {}))
    return works


def _hand_out_anew(
    access: ProjectAccess, given: CardAnswer, message: Message, columns: Sequence[str]
) -> None:
    """Hand out texts where they are wanted, or in another order where that has changed since.

    As by a model that has scored them, or by somebody who has given some to one person.
    """
    # Those that were gone back to aside.
    coming = [text_id for text_id, _ in message.have[KEPT:]]
    version, are_held = order_and_hold(access, coming)
    is_scored = bool(message.have) and version != message.scores
    if is_scored:
        return_leases(access, coming)
    if is_scored or not are_held:
        given.renewed = True
        # With those that stay, which get the new suggestions.
        hand_out(access, given, columns=columns)
    elif message.wants or message.resume:
        hand_out(access, given, have=message.have, columns=columns)


def hand_out(
    access: ProjectAccess,
    given: CardAnswer,
    *,
    have: Sequence[tuple[int, str]] = (),
    columns: Sequence[str] = (),
) -> None:
    """Lease the next texts, or renew them, and add to the answer those that the card does not have.

    Raises:
        InputError: the person is no member, the project is archived, or the database fails.
    """
    given.scores = scores_version(access)
    leased = lease_texts(access, MOST_TEXTS, spared=on_screens(access))
    given.held = [one.text_id for one in leased]
    offers, had = Offers(access), set(have)
    beside = _cells_beside(access, given.held, columns)
    texts = [_text(one, offers) | {"cells": beside.get(one.text_id, [])} for one in leased]
    given.texts = [one for one in texts if (one["text_id"], one["sha256"]) not in had]
    few = len(leased) < MOST_TEXTS
    given.more = not few or count_left(access, len(leased) + 1) > len(leased)
    if not leased:
        given.others = count_held_by_others(access)


def _save(access: ProjectAccess, sent: Sequence[SentAct], given: CardAnswer) -> None:
    """Save acts together; where one is refused, each by itself, so that it holds up no other."""
    offers, whole = Offers(access), list[tuple[SentAct, list[Act]]]()
    for one in sent:
        try:
            act = one.act()
            suggestion, seconds = offers.open(act.text_id, one.offer, act.seconds)
            whole.append((one, [replace(act, suggestion=suggestion, seconds=seconds)]))
        except InputError as error:
            given.refused.append({"id": one.request_id, "reason": for_visitors(error)})
    if not whole:
        return
    for one, acts in whole:
        if one.alike:
            acts += acts_of_alike(access, acts[0])
    try:
        saved = save_acts(access, [act for _, acts in whole for act in acts])
    except InputError as error:
        if len(whole) == 1 and not _is_of_the_moment(access, error):
            given.refused.append({"id": whole[0][0].request_id, "reason": for_visitors(error)})
            return
        if _is_of_the_moment(access, error):
            raise
        for one, _ in whole:
            _save(access, [one], given)
        return
    rows = iter(saved)
    for one, acts in whole:
        new = [next(rows).new for _ in acts]
        given.saved.append(one.request_id)
        given.labels += _labels_more(one, acts, new)


def _labels_more(one: SentAct, acts: Sequence[Act], new: Sequence[bool]) -> int:
    """How many labels more there are; a label that replaces another counts for none."""
    gained = 1 if acts[0].kind == "label" else -1 if one.takes_label_back else 0
    first = gained * new[0] * (not one.again)
    return first + gained * sum(new[1:])


def _is_of_the_moment(access: ProjectAccess, error: InputError) -> bool:
    """Whether the same act may be taken another time: then the card is to keep it."""
    if isinstance(error, AccessError) or isinstance(error.__cause__, SQLAlchemyError):
        return True
    return read_project(access).archived_at is not None


def _cells_beside(
    access: ProjectAccess, text_ids: Sequence[int], columns: Sequence[str]
) -> dict[int, list[tuple[str, str]]]:
    """Of each text the cells of these columns that are not empty, as words."""
    if not columns:
        return {}
    with access.reading() as connection:
        sources = first_sources(connection, text_ids)
    return {
        text_id: [
            (name, str(cells[name])[:_LONGEST_CELL])
            for name in columns
            if cells.get(name) not in (None, "")
        ]
        for text_id, (_, _, cells) in sources.items()
    }


def _text(leased: LeasedText, offers: Offers) -> dict[str, Any]:
    suggestion = [
        {"label": label, "score": score}
        for label, score in (
            (leased.suggested_label, leased.suggested_score),
            (leased.second_label, leased.second_score),
        )
        if label is not None and score is not None
    ]
    label, score, model = leased.suggested_label, leased.suggested_score, leased.model
    offered = None
    if label is not None and score is not None and model is not None:
        offered = Suggestion(label=label, score=score, model=model)
    return {
        "text_id": leased.text_id,
        "text": leased.text,
        "sha256": sha256_of(leased.text),
        "offer": offers.seal(leased.text_id, offered),
        "suggestion": suggestion or None,
        "model": leased.model,
        "kind": leased.kind,
        "alike": leased.alike,
    }
