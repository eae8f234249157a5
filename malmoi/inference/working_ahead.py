"""One step of a pipeline in a thread of its own, so that it overlaps with the step that follows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results that wait; more would only take memory.
_WAITING = 2


def worked_ahead(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """`map(work, items)`, with the next results made while the caller uses the one before.

    Items are taken by the caller's own thread: what gives them may belong to it. One item alone
    needs no thread.
    """
    waiting_items = iter(items)
    try:
        first = next(waiting_items)
    except StopIteration:
        return
    try:
        second = next(waiting_items)
    except StopIteration:
        yield work(first)
        return
    with ThreadPoolExecutor(1) as pool:
        results: deque[Future[Result]] = deque()
        try:
            for item in chain((first, second), waiting_items):
                results.append(pool.submit(work, item))
                if len(results) > _WAITING:
                    yield results.popleft().result()
            while results:
                yield results.popleft().result()
        finally:
            for result in results:
                result.cancel()
