"""The word vectors inside Kiwi's model, of 256 numbers for each of its 70,488 morphemes.

kiwipiepy's model (Apache 2.0) has learnt them from far more text than a project has labels for. It
tells the cosine of any two morphemes (`Kiwi.morpheme_similarity`), not the vectors. Cosines of all
morphemes with some landmarks give them back: of the landmarks' own block A = Q L Q' the vectors of
all are C Q L^(-1/2), with C the cosines with the landmarks (landmark multidimensional scaling,
de Silva & Tenenbaum 2004, section 2; the Nystroem method). They are Kiwi's own but for a rotation
and their lengths, which are 1 here; no linear model sees the difference.

Legend: V morphemes, L landmarks, D dimensions.
"""

from __future__ import annotations

import hashlib
from itertools import repeat
from pathlib import Path

import numpy as np

from malmoi import cache
from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.text.morphemes import analyser_version, morpheme_count, similarity_of_ids

KIND = "morpheme-vectors"
_FILE = "vectors.npy"
DIMENSIONS = 256
# More than the dimensions, so that the smallest eigenvalue is well above what float32 blurs: with
# 320 cosines come back to 1e-6 (measured), in half the time of 640.
_LANDMARKS = 320
_SEED = 0
# Below this part of the largest eigenvalue a dimension is noise: Kiwi's end at 1e-5 and go on at
# 1e-9 (measured).
_NOISE = 1e-7
# Raise it whenever other vectors would be made of the same model.
_VERSION = 1


def morpheme_vectors() -> np.ndarray:
    """Vectors by Kiwi's ids of morphemes, float16 [V, D], each of length 1.

    Computed once a version of Kiwi, in ten seconds to a minute, and kept in `runs/cache`.

    Raises:
        InputError: this version of Kiwi has no such vectors.
    """
    entry = _entry()
    found = _read(entry)
    if found is not None:
        cache.mark_used(entry)
        return found
    vectors = _computed().astype(np.float16)
    try:
        with directory_at_once(entry, shared=True) as scratch:
            np.save(scratch / _FILE, vectors)
        cache.bound(keep=[entry])
    except OSError:  # a folder that cannot be written, a full disk: computed again next time
        pass
    return vectors


def _entry() -> Path:
    made_of = f"{_VERSION} {_LANDMARKS} {_SEED} {analyser_version()}"
    return cache.CACHE / KIND / hashlib.sha256(made_of.encode()).hexdigest()[:32]


def _read(entry: Path) -> np.ndarray | None:
    """What an earlier run kept; what is damaged is removed."""
    try:
        found: np.ndarray = np.load(entry / _FILE, allow_pickle=False)
        whole = found.dtype == np.float16 and found.ndim == 2 and found.shape[1] == DIMENSIONS
        if whole and np.isfinite(found).all():
            return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EOFError):
        pass
    cache.remove(entry)
    return None


def _computed() -> np.ndarray:
    """Float32 [V, D]."""
    count = morpheme_count()
    if count < _LANDMARKS:
        raise InputError(
            "expected a Kiwi model with vectors of morphemes, found {version} without; install "
            "the versions of constraints.txt",
            version=analyser_version(),
        )
    chosen = np.random.default_rng(_SEED).choice(count, _LANDMARKS, replace=False)
    similarity = similarity_of_ids()
    cosines = np.empty((_LANDMARKS, count), dtype=np.float64)
    for row, landmark in enumerate(chosen.tolist()):
        cosines[row] = np.fromiter(map(similarity, repeat(landmark), range(count)), float, count)
    values, directions = np.linalg.eigh(cosines[:, chosen])
    values, directions = values[-DIMENSIONS:], directions[:, -DIMENSIONS:]
    if not np.isfinite(cosines).all() or values[0] <= _NOISE * values[-1]:
        raise InputError(
            "expected vectors of {dimensions} dimensions in the model of {version}, found others; "
            "install the versions of constraints.txt",
            dimensions=DIMENSIONS,
            version=analyser_version(),
        )
    vectors = cosines.T @ (directions / np.sqrt(values))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
