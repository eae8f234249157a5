"""All trainings of a run, in this process or side by side in several; what is done stays done."""

import multiprocessing
import queue
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from malmoi.devices import choose_device
from malmoi.errors import InputError
from malmoi.finetune.evaluation.fold_results import FoldResult
from malmoi.finetune.training.cross_validation import Experiment, result_path, run_job
from malmoi.workers.local import LostWorkerError, begin_worker, starting_workers

# Called with the seed, the fold (0: all texts) and the optimizer steps of it just done.
OnSteps = Callable[[int, int, int], None]
OnFold = Callable[[FoldResult], None]

_SECONDS_BETWEEN_LOOKS = 0.2


def run_jobs(
    experiment: Experiment,
    work: Path,
    *,
    jobs: int = 1,
    on_fold: OnFold,
    advance: OnSteps,
) -> list[FoldResult]:
    """Do every training of the experiment whose result is not in `work` yet.

    Args:
        work: the work folder, with what an earlier run finished.
        jobs: processes; each has an equal share of the threads, and a GPU of its own if there are
            as many. Another number of threads may round sums differently.
        on_fold: called with every fold, in order, as soon as it and those before it are done.
        advance: called after every step, or now and then with several.

    Returns:
        The folds in order.

    Raises:
        InputError: a training failed for what it was given.
        LostWorkerError: a process was killed from outside.
    """
    todo = [job for job in experiment.jobs if not result_path(work, *job).exists()]
    for job in experiment.jobs:
        if job not in todo:
            advance(*job, experiment.steps(*job))
    told = _InOrder(experiment, work, on_fold)
    told.tell()
    if min(jobs, len(todo)) <= 1:
        for seed, fold in todo:
            steps = _Steps(experiment, seed, fold, advance)
            run_job(experiment, seed, fold, work, steps)
            steps.finish()
            told.tell()
    else:
        _run_side_by_side(experiment, work, todo, min(jobs, len(todo)), told, advance)
    return told.results


class _Steps:
    """Turns a training's own count into steps just done."""

    def __init__(self, experiment: Experiment, seed: int, fold: int, advance: OnSteps) -> None:
        self._job, self._advance = (seed, fold), advance
        self._left = experiment.steps(seed, fold)

    def __call__(self, done: int, total: int) -> None:
        self._left -= 1
        self._advance(*self._job, 1)

    def finish(self) -> None:
        """Count the steps that early stopping saved."""
        if self._left:
            self._advance(*self._job, self._left)


class _InOrder:
    """Tells of the folds in their order, whichever is done first."""

    def __init__(self, experiment: Experiment, work: Path, on_fold: OnFold) -> None:
        self._coming = [job for job in experiment.jobs if job[1]]
        self._work, self._on_fold = work, on_fold
        self.results: list[FoldResult] = []

    def tell(self) -> None:
        while self._coming and (path := result_path(self._work, *self._coming[0])).exists():
            self._coming.pop(0)
            self.results.append(FoldResult.load(path))
            self._on_fold(self.results[-1])


def _run_side_by_side(
    experiment: Experiment,
    work: Path,
    todo: list[tuple[int, int]],
    processes: int,
    told: _InOrder,
    advance: OnSteps,
) -> None:
    # Not forked: torch's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    jobs: Any = context.Queue()
    answers: Any = context.Queue()
    # The longest first, all texts that is: begun last, it would keep one process busy alone.
    for job in sorted(todo, key=lambda job: -experiment.steps(*job)):
        jobs.put(job)
    for _ in range(processes):
        jobs.put(None)
    threads = max(1, torch.get_num_threads() // processes)
    workers = [
        context.Process(
            target=_work, args=(experiment, work, _device(experiment, n), threads, jobs, answers)
        )
        for n in range(processes)
    ]
    try:
        with starting_workers():
            for worker in workers:
                worker.start()
        left = len(todo)
        while left:
            answer = _next_answer(answers, workers)
            if isinstance(answer, BaseException):
                raise answer
            seed, fold, steps = answer
            if steps is None:
                left -= 1
                told.tell()
            else:
                advance(seed, fold, steps)
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()


def _next_answer(answers: Any, workers: list[Any]) -> Any:
    while True:
        try:
            return answers.get(timeout=_SECONDS_BETWEEN_LOOKS)
        except queue.Empty:
            if any(worker.exitcode not in (None, 0) for worker in workers):
                return LostWorkerError(
                    "one of {workers} processes was killed, most likely for want of memory; run "
                    "the command again, it goes on from the finished folds, with --jobs {fewer}",
                    workers=len(workers),
                    fewer=len(workers) - 1,
                )


def _device(experiment: Experiment, number: int) -> str:
    """The device of a process: the GPUs in turn, unless one was named."""
    device = choose_device(experiment.device)
    if device.type == "cuda" and device.index is None:
        return f"cuda:{number % torch.cuda.device_count()}"
    return str(device)


def _work(
    experiment: Experiment, work: Path, device: str, threads: int, jobs: Any, answers: Any
) -> None:
    begin_worker()
    torch.set_num_threads(threads)
    try:
        while (job := jobs.get()) is not None:
            seed, fold = job
            steps = _Steps(experiment, seed, fold, lambda *done: answers.put(done))
            run_job(experiment, seed, fold, work, steps, torch.device(device))
            steps.finish()
            answers.put((seed, fold, None))
    except (InputError, OSError) as error:
        answers.put(error)
    except Exception:
        answers.put(RuntimeError(traceback.format_exc()))
