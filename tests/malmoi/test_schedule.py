"""One schedule for both trainings: what each of them asks of it, and the rates they always had."""

import random

import pytest

from malmoi.schedule import warmup_then_decay


def test_a_rate_by_steps_rises_and_falls() -> None:
    rates = [warmup_then_decay(step, 100, 10, lead=1) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[9] == rates[10] == 1.0
    assert rates[99] == pytest.approx(1 / 90)
    assert warmup_then_decay(0, 3, 0, lead=1) == 1.0


def test_a_rate_by_fractions_rises_and_falls_in_straight_lines() -> None:
    rates = [warmup_then_decay(n / 10, 1, 0.2, peak=2e-3) for n in range(11)]
    expected = [0, 1, 2, 1.75, 1.5, 1.25, 1, 0.75, 0.5, 0.25, 0]
    assert rates == pytest.approx([1e-3 * rate for rate in expected])
    assert warmup_then_decay(0, 1, 0, peak=2e-3) == 2e-3


def test_a_run_that_is_all_warm_up_ends_at_zero() -> None:
    assert [warmup_then_decay(step, 2, 2, lead=1) for step in range(3)] == [0.5, 1.0, 0.0]
    assert warmup_then_decay(1.0, 1, 1.0, peak=2e-3) == 0.0


def test_rates_are_to_the_bit_what_the_formulas_of_both_trainings_give() -> None:
    """Another order of the same products would change the last bits of every weight."""
    draw = random.Random(0)
    for _ in range(2_000):
        peak, part, done = draw.choice([2e-4, 5e-4, 2e-3]), draw.random(), draw.random()
        falling = peak * (1 - done) / max(1e-9, 1 - part)
        expected = peak * done / part if done < part else falling
        assert warmup_then_decay(done, 1, part, peak=peak) == expected
        steps = draw.randint(1, 5_000)
        step, warmup = draw.randint(0, steps), round(steps * part)
        falling = max(0.0, (steps - step) / max(1, steps - warmup))
        expected = (step + 1) / warmup if step < warmup else falling
        assert warmup_then_decay(step, steps, warmup, lead=1) == expected
