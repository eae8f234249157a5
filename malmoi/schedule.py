"""The learning-rate schedule of pre-training and fine-tuning."""

# Where the warm-up is all of it, nothing is left to fall in.
_LEAST = 1e-9


def warmup_then_decay(
    done: float, total: float, warmup: float, *, peak: float = 1.0, lead: float = 0.0
) -> float:
    """Linear warm-up to the peak, then linear decay to zero.

    `done`, `total`, `warmup` and `lead` are in one unit: steps, or fractions of the run.

    Args:
        done: of the run, from 0 to `total`.
        total: the whole run.
        warmup: its part in which the rate rises.
        peak: rate at the end of the warm-up; 1 gives a factor for a learning rate.
        lead: how far ahead of `done` the rising part is. With 1 step, the first of a run does not
            have the rate 0, and the last of the warm-up has the peak.
    """
    if done < warmup:
        return peak * (done + lead) / warmup
    return max(0.0, peak * (total - done) / max(_LEAST, total - warmup))
