"""Which texts are trained on and which are held out: stratified, and near duplicates together.

Legend: N texts.
"""

import math
import re
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import bmat, coo_matrix
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedKFold

from malmoi.inference.tasks import Task, has_values
from malmoi.text.duplicates.near import BANDS, NearDuplicates, make_sketches

# More texts than this with one band in common are one group without comparing every two of them.
_LARGEST_COMPARED = 200
# The ranges of a regression's values that are spread over the folds like labels.
_VALUE_RANGES = 10
# As malmoi.text.duplicates.near: two different values share their lowest byte one time in 256.
_CHANCE = 1 / 256


@dataclass(frozen=True, kw_only=True)
class SplitTexts:
    """Which of N texts are in which fold.

    Attributes:
        folds: how many.
        fold_of: by the seed, int64 [N] from 1.
        strata: what is spread evenly, int64 [N], see `strata_of`.
        groups: what stays together, int64 [N]; None where nothing has to.
        same_letters: texts that share their letters and digits with another; they stay together.
        near_duplicates: texts that nearly equal another one.
        rule: what stays together, by name, as `report.json` has it.
    """

    folds: int
    fold_of: dict[int, np.ndarray]
    strata: np.ndarray
    groups: np.ndarray | None
    same_letters: int = 0
    near_duplicates: int = 0
    rule: Mapping[str, Any] = field(default_factory=dict)


def letters_of(text: str) -> str:
    """A text without case, blanks, signs and single jamo (ㅎㅎ); as it is where nothing is left.

    Who learnt "좋아요!" knows the label of "좋아요 ㅎㅎ".
    """
    letters = re.sub(r"[\W_ㄱ-ㆎ]+", "", text.casefold())
    return letters or text


def letters_of_all(texts: Sequence[str], pairs: Sequence[str] | None) -> list[tuple[str, ...]]:
    """What `letters_of` leaves of N texts; a pair the other way round is the same pair."""
    seconds = [""] * len(texts) if pairs is None else pairs
    return [
        tuple(sorted((letters_of(text), letters_of(second))))
        for text, second in zip(texts, seconds, strict=True)
    ]


def in_company(groups: np.ndarray) -> int:
    """How many of N texts are in a group with another one; groups int64 [N]."""
    return int((np.bincount(groups)[groups] > 1).sum())


def strata_of(task: Task, targets: np.ndarray) -> np.ndarray:
    """What is to be spread evenly over the folds, int64 [N].

    The label; of several labels the rarest one of the data, for frequent ones are spread by
    chance (after Sechidis et al. 2011, "On the Stratification of Multi-Label Data", who begin with
    the rarest); of a value its decile.

    Args:
        targets: see `malmoi.finetune.data.examples.Examples.targets`.
    """
    if task == "multi":
        counts = targets.sum(axis=0)
        rarest = np.where(targets > 0, counts, np.inf).argmin(axis=1).astype(np.int64)
        rarest[~targets.any(axis=1)] = targets.shape[1]  # no label is a kind of its own
        return rarest
    if has_values(task):
        cuts = np.quantile(targets, np.linspace(0, 1, _VALUE_RANGES + 1)[1:-1])
        return np.searchsorted(cuts, targets).astype(np.int64)
    return targets.astype(np.int64)


def assign_folds(
    label_ids: Sequence[int] | np.ndarray,
    folds: int,
    seed: int,
    groups: np.ndarray | None = None,
) -> list[int]:
    """A fold, 1 to `folds`, for each text; each label is spread evenly, the seed decides how.

    Args:
        label_ids: N of them, or other strata (`strata_of`).
        folds: how many.
        seed: equal seeds, equal folds.
        groups: [N] group of each text (`near_duplicate_groups`); a group is never split. Folds
            are then as even as whole groups allow, and lack no label where that can be.
    """
    strata = np.asarray(label_ids, dtype=np.int64)
    if groups is not None:
        kinds = int(strata.max()) + 1
        rarity = np.bincount(strata, minlength=kinds)
        # scikit-learn's StratifiedGroupKFold leaves a label out no less often, and folds less
        # even, and takes 70 s for 100,000 texts (measured).
        tried = [_assign_groups(strata, folds, seed, groups)]
        if absent_kinds(strata, np.array(tried[0]), folds):
            rarest_of = np.full(int(groups.max()) + 1, len(strata))
            np.minimum.at(rarest_of, groups, rarity[strata])
            tried.append(_assign_groups(strata, folds, seed, groups, first=rarest_of))
        return min(tried, key=lambda one: len(absent_kinds(strata, np.array(one), folds)))
    if np.bincount(strata).max() < folds:
        # Nothing can be spread; scikit-learn refuses them. So it is with few values, in tenths.
        spread = np.random.default_rng(seed).permutation(np.arange(len(strata)) % folds) + 1
        return [int(fold) for fold in spread]
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    fold_of = np.zeros(len(strata), dtype=np.int64)
    with warnings.catch_warnings():
        # A rare label in fewer texts than folds is spread as far as it goes.
        warnings.simplefilter("ignore", UserWarning)
        for fold, (_, held_out) in enumerate(splitter.split(np.zeros(len(strata)), strata), 1):
            fold_of[held_out] = fold
    return [int(fold) for fold in fold_of]


def absent_kinds(strata: np.ndarray, fold_of: np.ndarray, folds: int) -> list[tuple[int, int]]:
    """(fold, stratum) of each that has no text in a fold."""
    kinds = int(strata.max()) + 1
    texts = np.zeros((folds, kinds), dtype=np.int64)
    np.add.at(texts, (fold_of - 1, strata), 1)
    texts[:, texts.sum(axis=0) == 0] = 1  # of no text at all, none can be missing
    return [(int(fold) + 1, int(kind)) for fold, kind in np.argwhere(texts == 0)]


def numbered(names: Sequence[Hashable | None]) -> np.ndarray:
    """A number for each different name, int64 [N]; every None has its own."""
    numbers: dict[object, int] = {}
    return np.array(
        [
            numbers.setdefault(place if name is None else (name,), len(numbers))
            for place, name in enumerate(names)
        ],
        dtype=np.int64,
    )


def joined_groups(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Groups of texts that are in one group by either way of grouping; [N] int64 each."""
    if one is None or other is None:
        return other if one is None else one
    # Texts on the one side, groups on the other: who can be reached is together.
    kinds = int(one.max()) + 1
    links = coo_matrix(
        (np.ones(len(one), dtype=bool), (one, other)), shape=(kinds, int(other.max()) + 1)
    )
    parts = connected_components(bmat([[None, links], [links.T, None]]), directed=False)[1]
    joined: np.ndarray = parts[one].astype(np.int64)
    return joined


def _assign_groups(
    strata: np.ndarray,
    folds: int,
    seed: int,
    groups: np.ndarray,
    *,
    first: np.ndarray | None = None,
) -> list[int]:
    """Large groups first, each to the fold that has least of its labels; then the single texts.

    Args:
        first: [groups] number of each group that counts before its size, smallest first.
    """
    random = np.random.default_rng(seed)
    names, group_of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    kinds = int(strata.max()) + 1
    have = np.zeros((folds, kinds))  # texts of each label in each fold
    fold_of = np.zeros(len(strata), dtype=np.int64)
    by_group = np.argsort(group_of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    large = np.flatnonzero(sizes > 1)
    large = random.permutation(large)
    # The rarer the label, the more it matters that a fold has it.
    share = 1 / np.maximum(np.bincount(strata, minlength=kinds), 1)
    before = -sizes if first is None else first[names] * (len(strata) + 1) - sizes
    for group in large[np.argsort(before[large], kind="stable")]:
        members = by_group[starts[group] : starts[group + 1]]
        counts = np.bincount(strata[members], minlength=kinds)
        crowd = have @ (share * counts)
        # The emptiest of equally good folds; among equally empty ones, chance decides.
        best = np.lexsort((random.random(folds), have.sum(axis=1), crowd))[0]
        fold_of[members] = best + 1
        have[best] += counts
    single = by_group[starts[np.flatnonzero(sizes == 1)]]
    for kind in range(kinds):
        places = random.permutation(single[strata[single] == kind])
        fold_of[places] = random.permutation(_fill(have[:, kind], len(places))) + 1
    return [int(fold) for fold in fold_of]


def _fill(have: np.ndarray, more: int) -> np.ndarray:
    """Folds, from 0, of so many `more` texts that all folds end up as even as can be; [more]."""
    total = have.sum() + more
    order = np.argsort(have, kind="stable")
    room = np.zeros(len(have), dtype=np.int64)
    left, rest = more, total
    # From the fullest: one that has more than its share already takes none, and the others less.
    for position, fold in enumerate(order[::-1]):
        want = math.ceil(rest / (len(have) - position)) - int(have[fold])
        room[fold] = min(max(0, want), left)
        left -= room[fold]
        rest -= have[fold] + room[fold]
    return np.repeat(np.arange(len(have)), room)


def split_off(
    strata: np.ndarray,
    places: np.ndarray,
    fraction: float,
    seed: int,
    groups: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Split texts in two, stratified, groups whole.

    Args:
        strata: [N], of all texts.
        places: those to split.
        fraction: of the second part, at most 1/2; rounded to one of 1/2, 1/3, 1/4, ...
        seed: decides which texts.
        groups: [N], as for `assign_folds`.

    Returns:
        Places of the first and of the second part, rising.
    """
    parts = max(2, round(1 / fraction))
    if len(places) < parts:
        return places, places[:0]
    fold_of = np.array(
        assign_folds(strata[places], parts, seed, None if groups is None else groups[places])
    )
    return places[fold_of != 1], places[fold_of == 1]


def near_duplicate_groups(texts: Sequence[str], threshold: float) -> np.ndarray:
    """Groups of texts that nearly equal each other, directly or over others; int64 [N].

    All pairs that the bands of `malmoi.text.duplicates.near` find (92% of those of similarity 0.8)
    and whose estimated similarity is at least `threshold` are in one group.

    Args:
        texts: cleaned.
        threshold: Jaccard similarity of their character n-grams.

    Raises:
        InputError: the threshold is below 0.7 or above 1.
    """
    settings = NearDuplicates(threshold=threshold)
    if not texts:
        return np.zeros(0, dtype=np.int64)
    bands, sketches = make_sketches(list(texts), settings)
    links = [_links_in_band(bands[:, band], sketches, threshold) for band in range(BANDS)]
    one, other = np.concatenate(links, axis=1)
    graph = coo_matrix((np.ones(len(one), dtype=bool), (one, other)), shape=(len(texts),) * 2)
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _links_in_band(keys: np.ndarray, sketches: np.ndarray, threshold: float) -> np.ndarray:
    """Pairs of places, [2, pairs], that share a key and are similar."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(begins, len(ordered)))
    size_at = np.repeat(sizes, sizes)
    links = []
    for distance in range(1, min(int(sizes.max()), _LARGEST_COMPARED)):
        first = np.flatnonzero(ordered[distance:] == ordered[:-distance])
        if not len(first):
            break
        one, other = order[first], order[first + distance]
        # Where very many share a key, neighbours are linked unseen: too large a group harms less
        # than a pair on both sides.
        crowded = size_at[first] > _LARGEST_COMPARED
        if distance > 1:
            one, other, crowded = one[~crowded], other[~crowded], crowded[~crowded]
        for start in range(0, len(one), 1 << 16):
            block = slice(start, start + (1 << 16))
            equal = (sketches[one[block]] == sketches[other[block]]).mean(axis=1)
            similar = (equal - _CHANCE) / (1 - _CHANCE) >= threshold
            similar |= crowded[block]
            links.append(np.stack([one[block][similar], other[block][similar]]))
    return np.concatenate(links, axis=1) if links else np.zeros((2, 0), dtype=np.int64)
