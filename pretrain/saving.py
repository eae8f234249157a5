"""Saving a network with its tokenizer as a stock transformers directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from corpora.atomic import full_disk_as_oserror
from tokenizer.training import save_tokenizer


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save a stock transformers model with its tokenizer, weights as safetensors.

    Raises:
        OSError: errno.ENOSPC when the disk is full.
    """
    with quiet_transformers(), full_disk_as_oserror(directory):
        model.save_pretrained(directory)
        save_tokenizer(tokenizer, directory)
    for file in directory.iterdir():
        file.chmod(0o644)  # safetensors gives 0o600, which colleagues could not read.


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Silence transformers' load reports and bars: the callers check and report themselves."""
    verbosity = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
