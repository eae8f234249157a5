"""A model that learns while people label. Pages import these; nothing here takes long to import."""

from malmoi.app.learning.service import (
    LEARNING,
    after_import,
    after_labels,
    ask_for_vectors,
    fill,
    forget,
    is_on,
    learn_now,
    reads_meaning,
    state,
    vectors_of,
)

__all__ = [
    "LEARNING",
    "after_import",
    "after_labels",
    "ask_for_vectors",
    "fill",
    "forget",
    "is_on",
    "learn_now",
    "reads_meaning",
    "state",
    "vectors_of",
]
