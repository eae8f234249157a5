"""Requests are computed together, in fair turns, and each gets its own answers."""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.inference.prediction import Prediction
from malmoi.serving.batcher import (
    TEXTS_IN_BATCH,
    TEXTS_IN_TURN,
    Batcher,
)
from tests.malmoi.finetune.conftest import separable
from tests.malmoi.serving.conftest import ENGINE

TEXTS = [text for text, _ in separable()]

FAULTY = "faulty"


class Watched(Classifier):
    """A classifier that keeps what it was asked, and can be made to wait."""

    asked: list[list[str]]
    go: threading.Event

    @classmethod
    def of(cls, directory: Path) -> "Watched":
        found = cls.load(directory, ENGINE)
        assert isinstance(found, Watched)
        found.asked, found.go = [], threading.Event()
        found.go.set()
        return found

    def predict(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None, **more: Any
    ) -> list[Prediction]:
        self.asked.append(list(texts))
        assert self.go.wait(60)
        if FAULTY in texts:
            raise InputError("a text at fault")
        return super().predict(texts, pairs, **more)


@pytest.fixture
def watched(classifier_directory: Path) -> Watched:
    return Watched.of(classifier_directory)


def run(batcher: Batcher, work: Coroutine[Any, Any, Any]) -> Any:
    async def inside() -> Any:
        batcher.start()
        try:
            return await asyncio.wait_for(work, 60)
        finally:
            await batcher.stop()

    return asyncio.run(inside())


async def first_in_work(batcher: Batcher, watched: Watched) -> asyncio.Task[list[Prediction]]:
    """The request of the first text, when it is being computed; it waits for `watched.go`."""
    watched.go.clear()
    first = asyncio.create_task(batcher.predict(watched, TEXTS[:1]))
    while not watched.asked:
        await asyncio.sleep(0.01)
    return first


def many(number: int) -> list[str]:
    return [f"{TEXTS[place % len(TEXTS)]} {place}" for place in range(number)]


def test_requests_that_arrive_together_are_one_batch(watched: Watched) -> None:
    batcher = Batcher(100)

    async def ask() -> list[list[Prediction]]:
        return await asyncio.gather(*(batcher.predict(watched, [text]) for text in TEXTS))

    found = run(batcher, ask())
    assert watched.asked == [TEXTS]
    expected = watched.predict(TEXTS)
    assert [one.label for (one,) in found] == [one.label for one in expected]


def test_what_comes_while_others_are_computed_is_the_next_batch(watched: Watched) -> None:
    batcher = Batcher(100)

    async def ask() -> None:
        first = await first_in_work(batcher, watched)
        others = [asyncio.create_task(batcher.predict(watched, [text])) for text in TEXTS[1:9]]
        await asyncio.sleep(0.05)
        assert batcher.unanswered == 9
        watched.go.set()
        await asyncio.gather(first, *others)

    run(batcher, ask())
    assert watched.asked == [TEXTS[:1], TEXTS[1:9]]
    assert batcher.unanswered == 0


def test_every_request_gets_its_own_answers_in_order(watched: Watched) -> None:
    batcher = Batcher(100)
    requests = [many(number) for number in (1, 700, 3, TEXTS_IN_TURN + 1, 0, 130)]

    async def ask() -> list[list[Prediction]]:
        return await asyncio.gather(*(batcher.predict(watched, request) for request in requests))

    found = run(batcher, ask())
    assert max(map(len, watched.asked)) <= TEXTS_IN_BATCH
    for request, predictions in zip(requests, found, strict=True):
        labels = [one.label for one in predictions]
        assert labels == [one.label for one in watched.predict(request)] if request else not labels


@pytest.mark.parametrize(
    "texts", [many(5 * TEXTS_IN_BATCH), ["꿈" * 5000] * 60], ids=["many", "long"]
)
def test_a_large_request_does_not_hold_up_a_small_one(watched: Watched, texts: list[str]) -> None:
    batcher = Batcher(100)
    order: list[str] = []

    async def ask() -> None:
        async def named(name: str, request: list[str]) -> None:
            await batcher.predict(watched, request)
            order.append(name)

        large = asyncio.create_task(named("large", texts))
        while not watched.asked:
            await asyncio.sleep(0.001)
        await named("small", ["꿈에서"])
        await large

    run(batcher, ask())
    assert order == ["small", "large"]
    # The small one waits for one batch at most.
    assert any("꿈에서" in batch for batch in watched.asked[:2])


def test_what_nobody_waits_for_any_more_is_not_computed(watched: Watched) -> None:
    batcher = Batcher(100)

    async def ask() -> None:
        first = await first_in_work(batcher, watched)
        second = asyncio.create_task(batcher.predict(watched, TEXTS[1:2]))
        third = asyncio.create_task(batcher.predict(watched, TEXTS[2:3]))
        await asyncio.sleep(0.01)
        second.cancel()
        watched.go.set()
        await asyncio.gather(first, third)

    run(batcher, ask())
    assert watched.asked == [TEXTS[:1], TEXTS[2:3]]


def test_a_request_at_fault_does_not_spoil_the_others(watched: Watched) -> None:
    batcher = Batcher(100)

    async def ask() -> list[Any]:
        requests = [TEXTS[:2], [FAULTY], TEXTS[2:3]]
        return await asyncio.gather(
            *(batcher.predict(watched, request) for request in requests), return_exceptions=True
        )

    first, fault, last = run(batcher, ask())
    assert len(first) == 2 and len(last) == 1
    assert isinstance(fault, InputError)


def test_pairs_and_single_texts_of_a_model_that_reads_both(watched: Watched) -> None:
    batcher = Batcher(100)

    async def ask() -> list[list[Prediction]]:
        return await asyncio.gather(
            batcher.predict(watched, TEXTS[:2]),
            batcher.predict(watched, TEXTS[:2], TEXTS[2:4]),
            batcher.predict(watched, TEXTS[4:5]),
        )

    found = run(batcher, ask())
    assert [len(each) for each in found] == [2, 2, 1]
    assert watched.asked == [[*TEXTS[:2], *TEXTS[4:5]], TEXTS[:2]]
