"""The small models of the fine-tuning tests."""

from tests.finetune.conftest import classifier_directory, encoder

__all__ = ["classifier_directory", "encoder"]
