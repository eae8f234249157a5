"""A model that learns while people label. Pages import these; nothing here takes long to import."""

from app.learning.service import (
    LearningState,
    after_labels,
    find_alike,
    is_on,
    learn_now,
    state,
    suggest_by_model,
)

__all__ = [
    "LearningState",
    "after_labels",
    "find_alike",
    "is_on",
    "learn_now",
    "state",
    "suggest_by_model",
]
