"""Malmoi (말모이): Korean comments and reviews to a classifier, and the tools to label more.

    from malmoi import Classifier, clean_text, cross_validate, evaluate
    Classifier.load("malmoi-medium-reviews").predict(["배송은 빨랐는데 향이 너무 세요"])

Nothing else is public, but `malmoi.__version__` and `malmoi.sklearn`. torch and transformers are
imported by the first model that needs them.
"""

from typing import TYPE_CHECKING, Any

from malmoi.environment import prepare_environment
from malmoi.errors import InputError

if TYPE_CHECKING:
    __version__: str

    from malmoi.analysis.analysing import report
    from malmoi.finetune.api import cross_validate, evaluate
    from malmoi.inference.classifier import Classifier, Prediction
    from malmoi.text.cleaning.cleaner import clean_text

__all__ = [
    "Classifier",
    "InputError",
    "Prediction",
    "clean_text",
    "cross_validate",
    "evaluate",
    "report",
]

_PLACES = {
    "Classifier": "malmoi.inference.classifier",
    "Prediction": "malmoi.inference.classifier",
    "clean_text": "malmoi.text.cleaning.cleaner",
    "cross_validate": "malmoi.finetune.api",
    "evaluate": "malmoi.finetune.api",
    "report": "malmoi.analysis.analysing",
}

prepare_environment()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from malmoi.version import version

        return version()
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
