"""Steps of a pipeline in threads of their own, so that they overlap with what follows."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
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
    needs no thread. Where they raise, the results of those before come first.

    Args:
        work: what is done with each item, in `threads` threads.
        items: any number; few of them are in memory at a time.
    """
    failure: list[Exception] = []
    whole = _until_failure(items, failure)
    first = list(islice(whole, 2))
    if len(first) < 2:
        yield from map(work, first)
    else:
        yield from _by_threads(work, chain(first, whole), threads)
    if failure:
        raise failure[0]


def _until_failure(items: Iterable[Item], failure: list[Exception]) -> Iterator[Item]:
    """The items up to an error, which is kept, so that what came before is not lost."""
    try:
        yield from items
    except Exception as error:  # whatever the caller's items raise
        failure.append(error)


def _by_threads(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    with ThreadPoolExecutor(threads) as pool:
        results: deque[Future[Result]] = deque()
        try:
            for item in items:
                results.append(pool.submit(work, item))
                if len(results) > _WAITING * threads:
                    yield results.popleft().result()
            while results:
                yield results.popleft().result()
        finally:
            for result in results:
                result.cancel()
