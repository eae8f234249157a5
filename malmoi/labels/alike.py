"""Texts that are nearly the same, labelled together: an act for each, named after the first."""

from dataclasses import replace

from sqlalchemy import select

from malmoi.labels.access import ProjectAccess
from malmoi.labels.annotating import Act
from malmoi.labels.leasing import MOST_LEASES, texts_alike
from malmoi.labels.tables import AnnotationRow, TextRow


def acts_of_alike(access: ProjectAccess, act: Act) -> list[Act]:
    """What an act on a text does to those that are nearly the same, to be saved with it.

    A label is given to those that this annotator could be handed now; an undo takes back what the
    label that it withdraws gave to them. An act that was saved before does nothing more.

    Args:
        access: of an annotator.
        act: a label, or the undo of one.

    Raises:
        AccessError: the person is no member.
    """
    with access.reading() as connection:
        saved = select(AnnotationRow.id).where(AnnotationRow.request_id == act.request_id)
        if connection.scalar(saved) is not None:
            return []
    if act.kind == "label":
        others = texts_alike(access, act.text_id)
    elif act.withdraws is not None:
        others = _labelled_with(access, act.text_id, act.withdraws)
    else:
        return []
    return [
        replace(
            act,
            text_id=other,
            request_id=_named_after(act.request_id, other),
            withdraws=None if act.withdraws is None else _named_after(act.withdraws, other),
            # Nobody looked at this text.
            suggestion=None,
            seconds=None,
        )
        for other in others
    ]


def _labelled_with(access: ProjectAccess, text_id: int, request_id: str) -> list[int]:
    kind = select(TextRow.alike).where(TextRow.id == text_id).scalar_subquery()
    query = select(TextRow.id).where(
        TextRow.project_id == access.project_id, TextRow.alike == kind, TextRow.id != text_id
    )
    with access.reading() as connection:
        names = {_named_after(request_id, other): other for other in connection.scalars(query)}
        # No more than were labelled together at a time.
        found: list[int] = []
        known = list(names)
        for start in range(0, len(known), MOST_LEASES):
            some = known[start : start + MOST_LEASES]
            rows = select(AnnotationRow.request_id).where(AnnotationRow.request_id.in_(some))
            found += [names[one] for one in connection.scalars(rows)]
        return found


def _named_after(request_id: str, text_id: int) -> str:
    return f"{request_id}:{text_id}"
