"""How sure a score is that was measured on so many texts."""

import numpy as np

from malmoi.analysis.shares import wilson

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

    Returns:
        The lower and the upper end of the interval, both from 0 to 1.
    """
    low, high = wilson(np.array(share * texts), np.array(texts), quantile)
    return float(low), float(high)


def wide_enough(
    low: float, high: float, share: float, texts: int, quantile: float = TWO_SIDED_95
) -> tuple[float, float]:
    """An interval from the spread of some scores, never narrower than `share_interval`.

    Scores on the same texts are alike without being sure: where all texts get one label, or all the
    right one, they do not differ at all.

    Args:
        low: where the interval begins.
        high: where it ends.
        share: see `share_interval`.
        texts: see there; without any an interval of some width holds, and one without is 0 to 1.
        quantile: of the normal distribution.

    Returns:
        The lower and the upper end.
    """
    if texts <= 0 and low < high:
        return low, high
    least, most = share_interval(share, texts, quantile)
    return min(low, least), max(high, most)
