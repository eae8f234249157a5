"""How sure a score is that was measured on so many texts."""

import math

# Quantiles of the normal distribution, for intervals with two sides.
TWO_SIDED_90, TWO_SIDED_95 = 1.645, 1.960


def share_interval(share: float, texts: int, quantile: float = TWO_SIDED_95) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927, J. Am. Stat. Assoc. 22, 209-212).

    Unlike the share with so many standard errors to either side it has a width at 0 and 1, too. An
    F1 is no share: taking it for one of as many texts is about right (assumption).

    Args:
        share: from 0 to 1.
        texts: that it was measured on; without any the interval is 0 to 1.
        quantile: of the normal distribution.
    """
    if texts <= 0:
        return 0.0, 1.0
    square = quantile**2
    middle = (share + square / (2 * texts)) / (1 + square / texts)
    spread = share * (1 - share) / texts + square / (4 * texts**2)
    half = quantile * math.sqrt(max(0.0, spread)) / (1 + square / texts)
    return max(0.0, middle - half), min(1.0, middle + half)
