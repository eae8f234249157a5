"""Groups of texts of like meaning, named by their words.

Legend: N texts, H numbers of a vector.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from malmoi.text.label_keywords import WordTable

# Fewer texts have no groups worth a name (assumption).
FEWEST_TEXTS = 30
# A third of the root of the texts (assumption: silhouettes always wanted the fewest).
_FEWEST_THEMES, _MOST_THEMES = 3, 10
# A theme of fewer is none.
_FEWEST_OF_THEME = 4
# Directions of most variance that are kept; the others are noise to distances (assumption).
_DIRECTIONS = 20
_WORDS_OF_NAME = 3


@dataclass(frozen=True, kw_only=True)
class Theme:
    """Some texts.

    Attributes:
        words: that name it, the clearest first.
        places: of its texts among the N, the most typical first.
    """

    words: tuple[str, ...]
    places: np.ndarray


def find_themes(vectors: np.ndarray, words: WordTable, places: np.ndarray) -> list[Theme]:
    """Themes of some of N texts, the largest first; none of too few of them.

    K-means on the directions of most variance.

    Args:
        vectors: float32 [N, H], each of length 1.
        words: of the N texts.
        places: int64, which of them.
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.decomposition import PCA

    if len(places) < FEWEST_TEXTS:
        return []
    kept = min(_DIRECTIONS, len(places) - 1, vectors.shape[1])
    near = PCA(kept, random_state=0).fit_transform(vectors[places])
    number = min(_MOST_THEMES, max(_FEWEST_THEMES, math.isqrt(len(places)) // 3))
    model = MiniBatchKMeans(number, batch_size=2048, n_init=5, random_state=0).fit(near)
    groups, centers = model.labels_, model.cluster_centers_
    among = np.zeros(words.texts, dtype=bool)
    among[places] = True
    themes = []
    for group, center in enumerate(centers):
        mine = np.flatnonzero(groups == group)
        if len(mine) < _FEWEST_OF_THEME:
            continue
        distances = np.linalg.norm(near[mine] - center, axis=1)
        inside = np.zeros(words.texts, dtype=bool)
        inside[places[mine]] = True
        found = words.standing_out(inside, among & ~inside, count=_WORDS_OF_NAME)
        ordered = places[mine[np.argsort(distances, kind="stable")]]
        themes.append(Theme(words=tuple(one.word for one in found), places=ordered))
    return sorted(themes, key=lambda theme: -len(theme.places))


def spread_out(places: np.ndarray, texts: Sequence[str], count: int = 3) -> list[int]:
    """The first places whose texts are not the same, `count` at most."""
    found: dict[str, int] = {}
    for place in places.tolist():
        found.setdefault(texts[place], place)
        if len(found) == count:
            break
    return list(found.values())
