"""What processes of their own do to a project's database, all at once."""

import multiprocessing
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any, TypeVar

from malmoi.labels.annotating import Act, save_acts
from malmoi.labels.leasing import lease_texts
from malmoi.labels.people import Person
from malmoi.labels.projects import ProjectStore

Result = TypeVar("Result")


def write(url: str, who: str, first: int, barrier: Barrier) -> None:
    """Label the texts from `first` to the 60th when all others are there, too."""
    access = ProjectStore(url).access(Person(name=who), "리뷰")
    barrier.wait(timeout=300)
    for number in range(first, 60):
        act = Act(text_id=number + 1, kind="label", labels=["긍정"], request_id=f"{who}-{number}")
        save_acts(access, [act])


def lease(url: str, who: str, barrier: Barrier) -> list[int]:
    """Label all texts that can be leased when all others are there, too; the ids of them."""
    access = ProjectStore(url).access(Person(name=who), "리뷰")
    barrier.wait(timeout=300)
    done = []
    while texts := lease_texts(access, 2):
        for leased in texts:
            request_id = f"{who}-{leased.text_id}"
            act = Act(text_id=leased.text_id, kind="label", labels=["긍정"], request_id=request_id)
            save_acts(access, [act])
            done.append(leased.text_id)
    return done


def at_once(work: Callable[..., Result], given: Sequence[tuple[Any, ...]]) -> list[Result]:
    """What so many processes return, each for its arguments and a barrier of all of them.

    They are forked from one that has opened no database, so that none waits for imports.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    barrier = context.Barrier(len(given))
    processes = []
    for arguments in given:
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(
            target=_told, args=(work, arguments, barrier, sender), daemon=True
        )
        process.start()
        sender.close()
        processes.append((process, receiver))
    results = [receiver.recv() for _, receiver in processes]
    for process, _ in processes:
        process.join()
    assert [process.exitcode for process, _ in processes] == [0] * len(given)
    return results


def _told(
    work: Callable[..., Any], given: tuple[Any, ...], barrier: Barrier, sender: Connection
) -> None:
    sender.send(work(*given, barrier))
