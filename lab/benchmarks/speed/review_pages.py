"""Seconds of the store and of each click on 검수, 살펴보기 and 현황 with a large project in SQLite.

python -m lab.benchmarks.speed.review_pages --texts 100000 --labels 50000
"""

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, insert, update

from malmoi.labels.access import ProjectAccess
from malmoi.labels.agreement import agreement
from malmoi.labels.model_comparison import model_comparison, texts_behind
from malmoi.labels.people import Person
from malmoi.labels.project import NewProject, ProjectLabel, ProjectSettings
from malmoi.labels.project_models import (
    AnnotationRow,
    PlaceRow,
    ProjectRow,
    ScoreVersionRow,
    TextImportRow,
    TextRow,
    TextScoreRow,
    TextSourceRow,
)
from malmoi.labels.project_numbers import last_change, project_numbers
from malmoi.labels.projects import ProjectStore
from malmoi.labels.relabelling import relabel, undo_relabelling
from malmoi.labels.review import latest_decisions, review_counts, texts_to_review
from malmoi.labels.searching import Search, count_texts, search_texts
from malmoi.labels.text_history import read_history
from malmoi.labels.typical_words import typical_words

LABELS = ("긍정", "부정", "중립")
PEOPLE = ("지은", "민수", "하늘", "보람")
_TYPICAL = (
    "배송이 빨라요 포장이 꼼꼼해요 음질이 별로예요 환불해 주세요 색이 예뻐요 화면이 밝아요 값이 "
    "싸요 다시 살게요 그냥 저냥 쓸 만해요 소리가 커요 설명과 달라요 품질이 좋아요 추천합니다 "
    "실망 했어요 LG전자 USB 케이블이 짧아요 무난합니다 배터리가 오래 가요 금방 고장 났어요 "
)
_WORDS = _TYPICAL.split()
_FEW = "금낭화"


def fill(access: ProjectAccess, texts: int, labels: int, seed: int = 0) -> None:
    """Write texts, half as many votes by two annotators each, flags, skips, sources and scores."""
    chance = random.Random(seed)
    begin = datetime.now(UTC) - timedelta(days=20)
    project = access.project_id
    with access.engine.begin() as connection:
        connection.execute(
            insert(TextImportRow).values(
                id=1,
                project_id=project,
                content_key="x",
                person="관리자",
                rows_read=texts,
                new_texts=texts,
                started_at=begin,
                finished_at=begin,
            )
        )
        connection.execute(
            insert(ScoreVersionRow).values(
                id=1, project_id=project, model="quick-1", created_at=begin
            )
        )
        connection.execute(
            update(ProjectRow).where(ProjectRow.id == project).values(scores_version=1)
        )
        rows = []
        for one in range(1, texts + 1):
            words = " ".join(chance.choices(_WORDS, k=chance.randint(6, 24)))
            if one % 5_000 == 0:
                words += f" {_FEW}"
            rows.append(
                {
                    "id": one,
                    "project_id": project,
                    "text": f"{words} {one}",
                    "text_sha256": f"{one:064d}",
                    "lottery": chance.random(),
                    "votes": 0,
                    "is_open": True,
                    "disagrees": False,
                }
            )
        connection.execute(insert(TextRow), rows)
        connection.execute(
            insert(TextSourceRow),
            [
                {
                    "text_id": one,
                    "import_id": 1,
                    "source": "리뷰.csv",
                    "place": str(one + 1),
                    "cells": json.dumps({"번호": one}),
                }
                for one in range(1, texts + 1)
            ],
        )
        _label(access, connection, texts, labels, chance, begin)


def _label(
    access: ProjectAccess,
    connection: Connection,
    texts: int,
    labels: int,
    chance: random.Random,
    begin: datetime,
) -> None:
    """Two votes a text, a flag on some, and a score for each text."""
    shared = {"project_id": access.project_id}
    annotations: list[dict[str, Any]] = []
    done: dict[int, list[int]] = {}
    for place in range(labels):
        text_id = place // 2 * (texts // (labels // 2)) + 1
        said = done.setdefault(text_id, [])
        said.append(said[0] if said and chance.random() < 0.85 else chance.randint(1, 3))
        annotations.append(
            {
                "id": place + 1,
                "text_id": text_id,
                "annotator": PEOPLE[(place + place // 2) % len(PEOPLE)],
                "kind": "label",
                "choice": json.dumps([said[-1]]),
                "guideline_version": 1,
                "suggested_label": chance.choice(LABELS),
                "suggested_score": chance.random(),
                "suggested_model": "quick-1",
                "drawn": chance.choice(("scores", "random")),
                "seconds": chance.expovariate(0.3),
                "request_id": f"r{place}",
                "created_at": begin + timedelta(seconds=place * 30),
                **shared,
            }
        )
    connection.execute(insert(AnnotationRow), annotations)
    held = ("text_id", "annotator", "drawn", "choice")
    places = [
        {name: row[name] for name in held}
        | {"annotation_id": row["id"], "state": "labelled", **shared}
        for row in annotations
    ]
    connection.execute(insert(PlaceRow), places)
    flags = [
        {
            "text_id": one,
            "annotator": PEOPLE[0],
            "kind": "flag",
            "flagged": True,
            "guideline_version": 1,
            "request_id": f"f{one}",
            "created_at": begin + timedelta(seconds=labels * 30 + one),
            **shared,
        }
        for one in range(1, texts, max(1, texts // 200))
    ]
    connection.execute(insert(AnnotationRow), flags)
    _score(connection, texts, done, chance)


def _score(
    connection: Connection, texts: int, done: dict[int, list[int]], chance: random.Random
) -> None:
    """What a model says of each text, and how many votes each has."""
    scores = [
        {
            "version": 1,
            "text_id": one,
            "label": chance.choice(LABELS),
            "score": chance.random(),
            "priority": None if one in done else chance.random(),
            "doubt": chance.random() if one in done else None,
        }
        for one in range(1, texts + 1)
    ]
    connection.execute(insert(TextScoreRow), scores)
    counts = ("votes", "is_open", "disagrees")
    connection.execute(
        update(TextRow.__table__)  # type: ignore[arg-type]
        .where(TextRow.id == bindparam("id_"))
        .values({name: bindparam(name) for name in counts}),
        [
            {
                "id_": one,
                "votes": len(said),
                "is_open": len(said) < 2,
                "disagrees": len(set(said)) > 1,
            }
            for one, said in done.items()
        ],
    )


def store_calls(access: ProjectAccess) -> dict[str, Callable[[], object]]:
    """What the pages ask of the store, by name."""
    pair = review_counts(access).pairs[0].choices
    searches = {
        "all": Search(),
        "common word": Search(words="배송이"),
        "two words": Search(words="배송이 USB"),
        "rare word": Search(words=_FEW),
        "missing word": Search(words="없는말"),
        "missing word, a case": Search(words="xyzé"),
        "missing word, ASCII": Search(words="xyz"),
        "rare word, by score": Search(words=_FEW, order="least sure"),
        "label": Search(label="부정"),
        "label, newest": Search(label="부정", order="newest"),
        "label and other suggestion": Search(label="부정", suggested="긍정"),
        "suggestion and score": Search(suggested="긍정", score_from=0.95),
        "annotator": Search(annotator="지은"),
        "annotator nobody has": Search(annotator="없는 사람"),
        "day": Search(
            since=datetime.now(UTC) - timedelta(days=5), until=datetime.now(UTC) - timedelta(days=4)
        ),
        "flagged": Search(flagged=True),
        "by chance": Search(at_random=True),
        "open": Search(state="open"),
        "labelled": Search(state="labelled"),
        "disagreeing": Search(state="disagreeing"),
        "decided": Search(state="decided"),
        "skipped": Search(state="skipped"),
        "doubt": Search(order="doubt"),
        "surest": Search(order="surest"),
        "newest": Search(order="newest"),
    }
    calls: dict[str, Callable[[], object]] = {}
    for name, search in searches.items():
        calls[f"search {name}"] = partial(search_texts, access, search)
        calls[f"count {name}"] = partial(count_texts, access, search)
    calls |= {
        "review: queue": lambda: texts_to_review(access, limit=1),
        "review: queue of a pair": lambda: texts_to_review(access, limit=1, pair=pair),
        "review: flagged": lambda: texts_to_review(access, "flagged", limit=1),
        "review: counts": lambda: review_counts(access),
        "review: decisions": lambda: latest_decisions(access),
        "one text": lambda: read_history(access, 1),
        "last change": lambda: last_change(access, "reviewer"),
        "numbers": lambda: project_numbers(access),
        "model, shown": lambda: model_comparison(access, "shown"),
        "model, scores": lambda: model_comparison(access, "scores"),
        "model, behind": lambda: texts_behind(access, "scores", ("긍정", "부정"), in_sample=True),
        "agreement": lambda: agreement(access),
        "typical words": lambda: typical_words(access),
    }
    return calls


def main() -> None:
    """Fill a database and print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--labels", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--database", help="SQLAlchemy URL of an empty database; else SQLite")
    parser.add_argument("--keep", type=Path, help="folder for the SQLite file, to keep it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        os.chdir(folder)
        store = ProjectStore(given.database or f"sqlite:///{folder.resolve()}/labels.db")
        person = Person(name="관리자", is_local=True)
        if projects := store.list(person):
            access = store.access(person, projects[0].id)
        else:
            new = NewProject(
                name="리뷰",
                labels=[ProjectLabel(name=one) for one in LABELS],
                settings=ProjectSettings(annotators_per_text=2),
            )
            access = store.create(person, new)
            fill(access, given.texts, given.labels)
        for name, call in store_calls(access).items():
            slow = name in ("agreement", "typical words")
            print(f"{name:36} {_median(call, 1 if slow else given.repeats) * 1000:8.1f} ms")
        began = time.perf_counter()
        made = relabel(
            access, list(range(1, 10_001)), ["긍정"], request_id=str(began), expected=10_000
        )
        print(f"{'relabel 10,000':36} {(time.perf_counter() - began) * 1000:8.1f} ms")
        began = time.perf_counter()
        undo_relabelling(access, made.id)
        print(f"{'undo it':36} {(time.perf_counter() - began) * 1000:8.1f} ms")


def _median(call: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


if __name__ == "__main__":
    main()
