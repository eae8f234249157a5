"""Steps that work ahead, one inside the other."""

import time

from malmoi.inference.working_ahead import worked_ahead


def test_who_leaves_does_not_wait_for_the_steps_inside() -> None:
    done: list[int] = []

    def batch(number: int) -> int:
        time.sleep(0.01)
        done.append(number)
        return number

    def chunk(size: int) -> int:
        return sum(worked_ahead(batch, range(size), 2))

    assert list(worked_ahead(chunk, [2, 3, 4])) == [1, 3, 6]
    done.clear()
    results = worked_ahead(chunk, [1, 1, 10_000, 10_000])
    assert next(results) == 0
    while len(done) < 10:
        time.sleep(0.01)
    results.close()
    assert len(done) < 5_000
    ended = len(done)
    time.sleep(0.1)
    assert len(done) == ended
