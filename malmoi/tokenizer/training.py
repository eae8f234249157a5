"""Train a tokenizer of any kind: cased, NFC, accents kept, saved as an `AutoTokenizer` directory.

Accents are never stripped, because stripping decomposes text to NFD, which takes Hangul syllables
apart into jamo that no vocabulary holds (google-research/bert#228, electra#52).
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer, processors
from transformers import (
    PreTrainedTokenizerFast,
)

from malmoi.errors import InputError
from malmoi.tokenizer.alphabet import choose_alphabet, count_characters
from malmoi.tokenizer.kinds import ModelKind, check_training_settings
from malmoi.tokenizer.sampling import count_words
from malmoi.tokenizer.sentencepieces import (
    UNREACHABLE_SCORE,
    convert_sentencepiece,
    train_sentencepiece,
)
from malmoi.tokenizer.wordpiece import train_wordpiece
from malmoi.transformers_models import save_tokenizer, take_typed_tokens_as_text

# Embedding tables whose height is a multiple of 128 use the matrix units fully.
VOCABULARY_MULTIPLE = 128
# To be raised when the same texts give another tokenizer than before.
TRAINING_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class TrainedTokenizer:
    """A trained tokenizer.

    Attributes:
        tokenizer: a stock `PreTrainedTokenizerFast`; special tokens have the ids 0 to 4.
        sentencepiece_model: of unigram and bpe, the serialised `ModelProto` that the tokenizer was
            converted from; on NFC text it gives the same ids.
    """

    tokenizer: PreTrainedTokenizerFast
    sentencepiece_model: bytes | None

    def save(self, directory: Path) -> None:
        """Write what `AutoTokenizer` loads, and `sentencepiece.model` where there is one."""
        save_tokenizer(self.tokenizer, directory)
        if self.sentencepiece_model is not None:
            (directory / "sentencepiece.model").write_bytes(self.sentencepiece_model)


def train_tokenizer(
    texts: Sequence[str],
    *,
    model: ModelKind = "wordpiece",
    vocab_size: int = 32_000,
    min_frequency: int = 2,
) -> TrainedTokenizer:
    """Train a tokenizer; the same texts give the same tokenizer.

    Args:
        texts: cleaned texts, all of them used: draw from a large corpus by `sample_evenly`. With
            the marks of `mark_morphemes` no entry crosses the end of a morpheme.
        model: wordpiece through `tokenizers`; unigram and bpe through sentencepiece, converted.
        vocab_size: entries wanted, rounded up to a multiple of 128. A small corpus yields fewer
            pieces; their number is filled up to a multiple by `[unusedN]`, which no text reaches.
        min_frequency: characters, and pieces of wordpiece, seen less often are left out.

    Raises:
        InputError: an argument is out of bounds, or there is no text.
    """
    check_training_settings(model=model, vocab_size=vocab_size, min_frequency=min_frequency)
    vocab_size = -(-vocab_size // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
    words: Counter[str] = Counter()
    for word, count in count_words(texts).items():
        words[unicodedata.normalize("NFC", word)] += count
    if not words:
        raise InputError("expected texts to train a tokenizer on, found none")
    alphabet = choose_alphabet(
        count_characters(words), vocab_size=vocab_size, min_frequency=min_frequency
    )
    pieces: bytes | None = None
    if model == "wordpiece":
        raw = train_wordpiece(texts, alphabet, vocab_size=vocab_size, min_frequency=min_frequency)
    else:
        pieces = train_sentencepiece(words, alphabet, model=model, vocab_size=vocab_size)
        raw = convert_sentencepiece(pieces, alphabet)
    return TrainedTokenizer(
        tokenizer=wrap_tokenizer(_fill_vocabulary(raw)), sentencepiece_model=pieces
    )


def wrap_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Give a trained `Tokenizer` BERT's [CLS] A [SEP] B [SEP] frame and the transformers API."""
    cls_id, sep_id = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls_id), ("[SEP]", sep_id)],
    )
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    take_typed_tokens_as_text(wrapped)
    return wrapped


def _fill_vocabulary(tokenizer: Tokenizer) -> Tokenizer:
    """Pad with `[unusedN]` to a multiple of 128; text never becomes these entries."""
    state = json.loads(tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    for number in range(-len(vocabulary) % VOCABULARY_MULTIPLE):
        token = f"[unused{number}]"
        if state["model"]["type"] == "Unigram":
            vocabulary.append([token, UNREACHABLE_SCORE])
        else:
            # BPE has no merge that makes it, and WordPiece cuts at the brackets.
            vocabulary[token] = len(vocabulary)
    return Tokenizer.from_str(json.dumps(state, ensure_ascii=False))
