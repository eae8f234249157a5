"""Which part of the layers runs, where a run stacks them (model.stacked)."""

from itertools import pairwise

# From this fraction of a run on, this part of the layers. Gong et al. 2019, "Efficient Training of
# BERT by Progressively Stacking", go from 3 layers to 6 and 12; the fractions are assumptions.
_PARTS = ((0.0, 0.25), (0.35, 0.5), (0.7, 1.0))
# Fraction of a run, its last, in which all layers run.
LAST_FRACTION = 0.3


def part_at(fraction: float) -> float:
    """Which part of the layers runs when this fraction of the run is done."""
    return [part for start, part in _PARTS if start <= fraction][-1]


def mean_part(fraction: float = 1.0) -> float:
    """Which part of the layers has run until then, as a part of all layers over a whole run."""
    starts = [start for start, _ in _PARTS] + [1.0]
    return sum(
        part * max(0.0, min(fraction, end) - start)
        for (_, part), (start, end) in zip(_PARTS, pairwise(starts), strict=True)
    )
