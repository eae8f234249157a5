"""Requests of many clients computed together, by one thread, in turns that are fair."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from malmoi.inference.classifier import Classifier
from malmoi.inference.prediction import Prediction

# What is computed in one go. Measured by processor time a text, on reviews: 512 texts cost 10% more
# than any number, 256 texts 20%, 128 texts 37%; but who comes meanwhile waits. The characters
# bound that time where texts are long.
TEXTS_IN_BATCH, CHARACTERS_IN_BATCH = 512, 32_768
# One turn takes so much of a request; then the next one has its turn.
TEXTS_IN_TURN, CHARACTERS_IN_TURN = 64, 4_096
logger = logging.getLogger(__name__)


class OverloadedError(Exception):
    """Too many requests wait already."""


class WorkerEndedError(Exception):
    """Nobody computes any more: the task that makes batches has ended by a defect."""


@dataclass(eq=False, kw_only=True)
class _Request:
    """Texts that wait, and what was found for those whose turn it was."""

    classifier: Classifier
    texts: Sequence[str]
    pairs: Sequence[str] | None
    lengths: Sequence[int]
    answer: asyncio.Future[list[Prediction]]
    taken: int = 0
    found: list[Prediction] = field(default_factory=list)

    @property
    def kind(self) -> tuple[Classifier, bool]:
        """What is computed together is alike in this."""
        return self.classifier, self.pairs is None

    def next_part(self, most_texts: int) -> tuple[_Part, int]:
        """The texts whose turn it is, at least one, and how many characters they have."""
        first, length = self.taken, 0
        while self.taken < min(first + most_texts, len(self.texts)):
            length += self.lengths[self.taken]
            self.taken += 1
            if length >= CHARACTERS_IN_TURN:
                break
        return _Part(request=self, first=first, stop=self.taken), length


@dataclass(frozen=True, kw_only=True)
class _Part:
    """The texts of a request from `first` up to `stop`."""

    request: _Request
    first: int
    stop: int

    @property
    def texts(self) -> Sequence[str]:
        return self.request.texts[self.first : self.stop]

    @property
    def pairs(self) -> Sequence[str]:
        return (self.request.pairs or ())[self.first : self.stop]


class Batcher:
    """Gathers the requests that come while others are computed; a lone one is computed at once.

    All methods are for the event loop's thread.
    """

    def __init__(
        self, max_requests: int, on_batch: Callable[[int], None] = lambda texts: None
    ) -> None:
        """Take at most `max_requests` without an answer; nothing runs before `start`.

        `on_batch` is called with the number of texts before a batch is computed.
        """
        self._max_requests, self._on_batch = max_requests, on_batch
        self._queue: deque[_Request] = deque()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="malmoi-batches")
        self._worker: asyncio.Task[None] | None = None
        self._unanswered: set[_Request] = set()

    @property
    def unanswered(self) -> int:
        """Requests that are computed or wait for it."""
        return len(self._unanswered)

    @property
    def full(self) -> bool:
        """Whether too many requests wait for another one to be taken."""
        return self.unanswered >= self._max_requests

    def check_worker(self) -> None:
        """Raise WorkerEndedError if nobody computes any more."""
        if self._worker is not None and self._worker.done():
            raise WorkerEndedError

    def start(self) -> None:
        """Begin to work, in the loop that runs."""
        self._worker = asyncio.create_task(self._work())

    async def stop(self) -> None:
        """End; what has no answer yet gets none."""
        if self._worker is not None:
            self._worker.cancel()
            with suppress(asyncio.CancelledError):
                await self._worker
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def predict(
        self,
        classifier: Classifier,
        texts: Sequence[str],
        pairs: Sequence[str] | None = None,
    ) -> list[Prediction]:
        """As `classifier.predict`, whose `InputError` is raised, too.

        Raises:
            OverloadedError: too many requests wait.
            WorkerEndedError: see there.
        """
        self.check_worker()
        if self.full:
            raise OverloadedError
        if not texts:
            return []
        answer: asyncio.Future[list[Prediction]] = asyncio.get_running_loop().create_future()
        lengths = list(map(len, texts))
        if pairs is not None:
            lengths = [mine + len(other) for mine, other in zip(lengths, pairs, strict=True)]
        request = _Request(
            classifier=classifier, texts=texts, pairs=pairs, lengths=lengths, answer=answer
        )
        self._queue.append(request)
        self._arrived.set()
        self._unanswered.add(request)
        try:
            return await answer  # whoever gives up cancels it, and it is not computed any more
        finally:
            self._unanswered.discard(request)

    async def _work(self) -> None:
        try:
            while True:
                await self._arrived.wait()
                # Requests whose bytes came in the same turn of the loop come along.
                await asyncio.sleep(0)
                if parts := self._take():
                    await self._compute(parts)
                if not self._queue:
                    self._arrived.clear()
        except Exception:
            logger.exception("the task that makes batches has ended")
            for request in self._unanswered:
                self._fail(request, WorkerEndedError())

    def _take(self) -> list[_Part]:
        """The next texts, of all requests in turns, as many as one batch has."""
        parts: list[_Part] = []
        other_kind: list[_Request] = []
        texts, characters = 0, 0
        while self._queue and texts < TEXTS_IN_BATCH and characters < CHARACTERS_IN_BATCH:
            request = self._queue.popleft()
            if request.answer.done():
                continue
            if parts and request.kind != parts[0].request.kind:
                other_kind.append(request)
                continue
            part, length = request.next_part(min(TEXTS_IN_TURN, TEXTS_IN_BATCH - texts))
            parts.append(part)
            texts += part.stop - part.first
            characters += length
            if part.stop < len(request.texts):
                self._queue.append(request)
        self._queue.extendleft(reversed(other_kind))
        return parts

    async def _compute(self, parts: list[_Part]) -> None:
        self._on_batch(sum(part.stop - part.first for part in parts))
        try:
            found = await self._predicted(parts)
        except Exception as error:
            if len(parts) == 1:
                self._fail(parts[0].request, error)
                return
            # One of them is at fault: the others must not be.
            for part in parts:
                await self._compute([part])
            return
        first = 0
        for part in parts:
            request, count = part.request, part.stop - part.first
            request.found += found[first : first + count]
            first += count
            if len(request.found) == len(request.texts) and not request.answer.done():
                request.answer.set_result(request.found)

    async def _predicted(self, parts: list[_Part]) -> list[Prediction]:
        texts = [text for part in parts for text in part.texts]
        classifier, alone = parts[0].request.kind
        pairs = None if alone else [pair for part in parts for pair in part.pairs]
        loop = asyncio.get_running_loop()
        predict = partial(classifier.predict, texts, pairs, progress=False)
        return await loop.run_in_executor(self._thread, predict)

    def _fail(self, request: _Request, error: Exception) -> None:
        if not request.answer.done():
            request.answer.set_exception(error)
