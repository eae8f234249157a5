"""Saving a network with its tokenizer as a stock transformers directory."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from tokenizer.training import save_tokenizer


def save_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Save a stock transformers model with its tokenizer, weights as safetensors.

    Raises:
        OSError: errno.ENOSPC when the disk is full.
    """
    try:
        with quiet_transformers():
            model.save_pretrained(directory)
    except SafetensorError as error:
        # Its Rust half writes the file and has an error of its own for a full disk.
        if f"os error {errno.ENOSPC}" in str(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory)) from error
        raise
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
