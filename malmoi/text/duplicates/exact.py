"""Which texts came before: exact duplicates by 64-bit keys in plain arrays."""

import numpy as np

# Sorted at a time, which bounds the memory of sorting to about 165 MB (measured).
_KEYS_PER_SORT = 1 << 22


def first_occurrences(keys: np.ndarray) -> np.ndarray:
    """For every key the index of the first equal key.

    Memory is 8 bytes a key for the result beside the 8 of the keys. Of a hundred million texts
    the chance that any two different ones share a 64-bit key is 1 in 3,700 (birthday bound).

    Args:
        keys: [N] uint64, evenly distributed as hashes are.

    Returns:
        [N] int64, at most the key's own index.
    """
    firsts = np.arange(len(keys), dtype=np.int64)
    # The keys are sorted in ranges of their highest byte; at 256 ranges of 4 million keys a
    # billion texts.
    highest = keys.astype("<u8", copy=False).view(np.uint8)[7::8]
    ranges = min(256, 1 << (len(keys) // _KEYS_PER_SORT).bit_length())
    for start in range(0, 256, 256 // ranges):
        members = np.flatnonzero((highest >= start) & (highest <= start + 256 // ranges - 1))
        if not len(members):
            continue
        # A stable sort keeps equal keys in their order, so the first of a run came first.
        members = members[np.argsort(keys[members], kind="stable")]
        ordered = keys[members]
        starts_run = np.ones(len(ordered), dtype=bool)
        starts_run[1:] = ordered[1:] != ordered[:-1]
        run = np.cumsum(starts_run) - 1
        firsts[members] = members[np.flatnonzero(starts_run)[run]]
    return firsts
