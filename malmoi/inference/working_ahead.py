"""Steps of a pipeline in threads of their own, so that they overlap with what follows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results of each thread that wait for the caller; more would only take memory.
_WAITING = 2


def worked_ahead(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int = 1
) -> Iterator[Result]:
    """`map(work, items)`, with the next results made while the caller uses the one before.

    Items are taken by the caller's own thread: what gives them may belong to it. One item alone
    needs no thread.

    Args:
        work: what is done with each item, in `threads` threads.
        items: any number; few of them are in memory at a time.
        threads: that work side by side.
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
    with ThreadPoolExecutor(threads) as pool:
        results: deque[Future[Result]] = deque()
        try:
            for item in chain((first, second), waiting_items):
                results.append(pool.submit(work, item))
                if len(results) > _WAITING * threads:
                    yield results.popleft().result()
            while results:
                yield results.popleft().result()
        finally:
            for result in results:
                result.cancel()
