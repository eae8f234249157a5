"""The empty working folder of the app's tests, and the small encoder of the fine-tuning tests."""

from tests.app.conftest import workplace
from tests.finetune.conftest import encoder

__all__ = ["encoder", "workplace"]
