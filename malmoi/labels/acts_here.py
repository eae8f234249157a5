"""Whether what a file says of a text is new here: an import must not undo what people did since.

Of one person the later act holds, by the time at which it was done; what another person says
stands beside it. Of rows of one file that contradict each other the first holds, as in
`malmoi.finetune.data.examples`, unless they tell their times.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, select

from malmoi.labels.annotating import read_remarks
from malmoi.labels.final_label_rule import decided
from malmoi.labels.tables import AdjudicationRow, AnnotationRow
from malmoi.messages import Phrase

# new: nobody had said it. differing: nor that, and others or the same person say something else.
# same: it holds here already. older: the person has said something else later. undated: or
# earlier, as the file does not say when. contradicting: a row before says something else.
Verdict = Literal["new", "differing", "same", "older", "undated", "contradicting"]
# What is said of so many, beside the number of new labels.
VERDICTS: dict[Verdict, Phrase] = {
    "differing": Phrase("{count:,} of these differ from others: to review"),
    "same": Phrase("{count:,} here already"),
    "older": Phrase("{count:,} older than what is here: left out"),
    "undated": Phrase("{count:,} differ from what is here and do not say when: left out"),
    "contradicting": Phrase("{count:,} contradict a row before: left out"),
}
# Whose act a reviewer's decision is: the project's, whoever makes it.
_DECISION = ""
# Ids of requests of imports; those without a time came in without one.
_UNDATED_IMPORT = re.compile(r"import:-?\d+:undated:|(?:table|doccano|label-studio)\b.*:\d+:")


def import_request(import_id: int, *words: str, is_dated: bool) -> str:
    """The id of the request of an act in a file: of the same row it is the same again."""
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:32]
    return f"import:{import_id}:{'dated' if is_dated else 'undated'}:{digest}"


def moment(cell: Any) -> datetime | None:
    """A time as files write it: ISO 8601 or seconds since 1970, in UTC where no zone is told."""
    try:
        if isinstance(cell, str) and not re.fullmatch(r"\d+(\.\d+)?", cell.strip()):
            cell = datetime.fromisoformat(cell.strip())
        elif isinstance(cell, str | int | float) and not isinstance(cell, bool):
            cell = datetime.fromtimestamp(float(cell), UTC)
        if not isinstance(cell, datetime):
            return None
        return cell.replace(tzinfo=UTC) if cell.tzinfo is None else cell.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldAct:
    """The last thing that somebody has said of a text.

    Attributes:
        said: a choice as it stands in the log, "skip", or None where it was taken back.
        at: when.
        request_id: of the act.
    """

    said: str | None
    at: datetime
    request_id: str


class ActsHere:
    """What people have said of some texts, and of each further act whether it is new.

    Args:
        import_id: of the import that asks; a trial of several sets it for each of them.
    """

    def __init__(self, import_id: int) -> None:
        self.import_id = import_id
        self._held: dict[tuple[str, str], HeldAct] = {}
        self._logs: dict[str, set[tuple[str, str, datetime]]] = {}
        self._once_said: dict[str, set[str]] = {}
        self._finals: dict[str, str] = {}
        self._people: dict[str, dict[str, str]] = {}
        self._notes: dict[str, dict[str, str]] = {}

    def read(self, connection: Connection, texts: Mapping[int, str]) -> None:
        """Look up some texts; what was said of others before is kept.

        Args:
            connection: of a transaction that has asked for the role of an admin.
            texts: how each is called here, by its id.
        """
        ids = list(texts)
        rows = (
            select(AnnotationRow.__table__)
            .where(
                AnnotationRow.text_id.in_(ids), AnnotationRow.kind.in_(("label", "skip", "undo"))
            )
            .order_by(AnnotationRow.id)
        )
        decided_acts: set[int] = set()
        undone: dict[tuple[int, str], set[int]] = {}
        acts: dict[tuple[int, str], list[RowMapping]] = {}
        for row in connection.execute(rows).mappings():
            place = row["text_id"], row["annotator"]
            if row["kind"] == "undo":
                if row["withdraws"] in decided_acts:
                    undone.setdefault(place, set()).add(row["withdraws"])
                    acts[place].append(row)
                continue
            decided_acts.add(row["id"])
            acts.setdefault(place, []).append(row)
            said = row["choice"] or row["kind"]
            if not _UNDATED_IMPORT.match(row["request_id"]):
                self._once_said.setdefault(texts[row["text_id"]], set()).add(said)
            log = self._logs.setdefault(texts[row["text_id"]], set())
            log.add((row["annotator"], said, row["created_at"].replace(microsecond=0)))
        for (text_id, annotator), some in acts.items():
            gone = undone.get((text_id, annotator), set())
            holding = [r for r in some if r["kind"] != "undo" and r["id"] not in gone]
            held = HeldAct(
                said=(holding[-1]["choice"] or "skip") if holding else None,
                at=max(row["created_at"] for row in some),
                request_id=some[-1]["request_id"],
            )
            self._hold(texts[text_id], annotator, held)
        self._read_decisions(connection, texts)
        for (text_id, annotator), (_, note) in read_remarks(connection, ids).items():
            if note:
                self._notes.setdefault(texts[text_id], {})[annotator] = note

    def _read_decisions(self, connection: Connection, texts: Mapping[int, str]) -> None:
        decisions = (
            select(AdjudicationRow.__table__)
            .where(AdjudicationRow.text_id.in_(texts))
            .order_by(AdjudicationRow.id)
        )
        for row in connection.execute(decisions).mappings():
            held = HeldAct(said=row["choice"], at=row["created_at"], request_id=row["request_id"])
            self._held[texts[row["text_id"]], _DECISION] = held
        for name in texts.values():
            votes = [(said,) for said in self._people.get(name, {}).values() if said != "skip"]
            decision = self._held.get((name, _DECISION))
            choice = None if decision is None else decision.said
            final = decided(None if choice is None else (choice,), votes)
            if final is not None:
                self._finals[name] = final.labels[0]

    def _hold(self, text: str, person: str, held: HeldAct) -> None:
        self._held[text, person] = held
        people = self._people.setdefault(text, {})
        if held.said is None:
            people.pop(person, None)
        else:
            people[person] = held.said

    def new_note(self, text: str, person: str, note: str) -> str | None:
        """What is new of a note; None where nothing is, "" where it has to be left out."""
        notes = self._notes.get(text, {})
        known = {f"{one}: {line}" for one, said in notes.items() for line in said.splitlines()}
        known |= {f"{one}: {said}" for one, said in notes.items()} | set(
            notes.get(person, "").splitlines()
        )
        fresh = [line for line in note.splitlines() if line not in known]
        if not fresh or note in known or note == notes.get(person):
            return None
        # Another one of the same person would take its place.
        return "" if person in notes else "\n".join(fresh)

    def verdict(
        self,
        text: str,
        person: str,
        said: str,
        *,
        at: datetime | None,
        request_id: str,
        is_named: bool = True,
        is_decision: bool = False,
    ) -> Verdict:
        """Whether an act is new; one that is holds from then on.

        Args:
            text: as `read` calls it.
            said: a choice as it stands in the log, or "skip".
            at: when, or None.
            is_named: whether somebody says who did it.
            is_decision: of a reviewer, not a vote.
        """
        held = self._held.get((text, _DECISION if is_decision else person))
        if held is not None and held.request_id == request_id:
            return "same"
        if not is_decision and self._is_known(text, person if is_named else None, said, at):
            return "same" if said in self._people.get(text, {}).values() else "older"
        if not is_named and self._finals.get(text) == said:
            return "same"
        others = self._people.get(text, {})
        verdict: Verdict = "new"
        if held is not None:
            if held.said == said:
                return "same"
            if held.request_id.startswith(f"import:{self.import_id}:") and at in (None, held.at):
                return "contradicting"
            if at is None and not _UNDATED_IMPORT.match(held.request_id):
                return "undated"
            if at is not None and at <= held.at:
                return "older"
        elif any(other not in (said, "skip") for other in others.values()):
            verdict = "differing"
        new = HeldAct(said=said, at=at or datetime.now(UTC), request_id=request_id)
        if is_decision:
            self._held[text, _DECISION] = new
        else:
            self._hold(text, person, new)
        return verdict

    def _is_known(self, text: str, person: str | None, said: str, at: datetime | None) -> bool:
        """Whether the log has the very act, which our own exports hold again.

        Without a time and a name, any act that says so may be it, but for those that came in so.
        """
        if at is None:
            return person is None and said in self._once_said.get(text, set())
        second = at.replace(microsecond=0)
        log = self._logs.get(text, set())
        if person is not None:
            return (person, said, second) in log
        return any(one[1:] == (said, second) for one in log)


def known_requests(connection: Connection, requests: Collection[str]) -> set[str]:
    """Those of some requests that the log of acts or that of decisions has."""
    found: Iterable[str] = connection.scalars(
        select(AnnotationRow.request_id)
        .where(AnnotationRow.request_id.in_(requests))
        .union(select(AdjudicationRow.request_id).where(AdjudicationRow.request_id.in_(requests)))
    )
    return set(found)
