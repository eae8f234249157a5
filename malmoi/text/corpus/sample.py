"""A sample of a stream of any length, drawn in one pass."""

import random
from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")


def draw(items: Iterable[Item], size: int, seed: int) -> list[Item]:
    """Up to `size` items, each equally likely, in their order; memory is that of the sample.

    Algorithm R (Vitter 1985, "Random Sampling with a Reservoir", https://doi.org/10.1145/3147.3165).
    """
    generator = random.Random(seed)
    reservoir: list[tuple[int, Item]] = []
    for number, item in enumerate(items):
        if number < size:
            reservoir.append((number, item))
        elif (place := generator.randrange(number + 1)) < size:
            reservoir[place] = (number, item)
    return [item for _, item in sorted(reservoir, key=lambda pair: pair[0])]
