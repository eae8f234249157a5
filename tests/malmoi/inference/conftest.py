"""The small classifier of the fine-tuning tests."""

from tests.finetune.conftest import classifier_directory

__all__ = ["classifier_directory"]
