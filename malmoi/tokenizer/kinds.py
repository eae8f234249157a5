"""What can be asked of a tokenizer's training; without what the training itself has to import."""

from typing import Literal, get_args

from malmoi.errors import InputError

ModelKind = Literal["wordpiece", "unigram", "bpe"]
MAX_VOCABULARY = 1_000_000
# More no longer changes a vocabulary (tokenizers#316), and counts beyond 32 bits have silently
# broken some (tokenizers#1170).
MAX_SAMPLE_BYTES = 1_000_000_000


def check_training_settings(*, model: str, vocab_size: int, min_frequency: int) -> None:
    """Raise InputError for the first argument of `train_tokenizer` that is out of bounds."""
    if model not in get_args(ModelKind):
        raise InputError(
            "expected --model {kinds}, found {model}",
            kinds=", ".join(get_args(ModelKind)),
            model=model,
        )
    if not 1_024 <= vocab_size <= MAX_VOCABULARY:
        raise InputError(
            "expected --vocab-size from 1024 (Korean uses more syllables than that) to {most}, "
            "found {vocab_size}",
            most=MAX_VOCABULARY,
            vocab_size=vocab_size,
        )
    if min_frequency < 0:
        raise InputError(
            "expected --min-frequency of 0 or more, found {min_frequency}",
            min_frequency=min_frequency,
        )
