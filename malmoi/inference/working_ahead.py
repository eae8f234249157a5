"""Steps of a pipeline in threads of their own, so that they overlap with what follows."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Results of each thread that wait for the caller; more would only take memory.
_WAITING = 2
# Of a thread that works ahead: `unwanted`, an event, set where nobody waits for it any more.
_THREAD = threading.local()


def worked_ahead(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int = 1
) -> Iterator[Result]:
    """`map(work, items)`, with the next results made while the caller uses the one before.

    Items are taken by the caller's own thread: what gives them may belong to it. One item alone
    needs no thread. Where they raise, the results of those before come first. Where the caller
    leaves, as by Ctrl-C, work that works ahead itself ends before its next result.

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
    unwanted = threading.Event()
    # Of whoever asked for what this thread does, if that is a step, too.
    outer = getattr(_THREAD, "unwanted", unwanted)
    results: deque[Future[Result]] = deque()

    def do(item: Item) -> Result:
        _THREAD.unwanted = unwanted
        return work(item)

    def oldest() -> Result:
        if outer.is_set():
            raise CancelledError
        return results.popleft().result()

    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                results.append(pool.submit(do, item))
                if len(results) > _WAITING * threads:
                    yield oldest()
            while results:
                yield oldest()
        finally:
            unwanted.set()
            for result in results:
                result.cancel()
