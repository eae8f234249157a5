"""Train a tokenizer of any kind: cased, NFC, accents kept, saved as an `AutoTokenizer` directory.

Accents are never stripped, because stripping decomposes text to NFD, which takes Hangul syllables
apart into jamo that no vocabulary holds (google-research/bert#228, electra#52).
"""

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, processors
from transformers import (
    AutoTokenizer,
    BertTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from corpora.errors import InputError
from tokenizer.alphabet import SPECIAL_TOKENS, choose_alphabet, count_characters
from tokenizer.kinds import ModelKind, check_training_settings
from tokenizer.sampling import count_words
from tokenizer.sentencepieces import UNREACHABLE_SCORE, convert_sentencepiece, train_sentencepiece
from tokenizer.typed_tokens import take_typed_tokens_as_text
from tokenizer.wordpiece import train_wordpiece

# Embedding tables whose height is a multiple of 128 use the matrix units fully.
VOCABULARY_MULTIPLE = 128
_SYLLABLE = re.compile("[가-힣]")
# Ours leave 0.004% of their own corpora unknown (measured on six of them).
MANY_UNKNOWN = 0.05
# To be raised when the same texts give another tokenizer than before.
TRAINING_VERSION = 2


@dataclass(frozen=True, kw_only=True)
class Trained:
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


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Write what `AutoTokenizer` loads, in transformers 4 as in 5.

    The name that 5 gives the class of a fast tokenizer is unknown to 4; the one of 4 both know.
    """
    tokenizer.save_pretrained(directory)
    path = directory / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    if config.get("tokenizer_class") == "TokenizersBackend":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
        config.pop("backend", None)
        path.write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def train_tokenizer(
    texts: Sequence[str],
    *,
    model: ModelKind = "wordpiece",
    vocab_size: int = 32_000,
    min_frequency: int = 2,
) -> Trained:
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
    return Trained(tokenizer=wrap_tokenizer(_fill_vocabulary(raw)), sentencepiece_model=pieces)


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


def tokenizer_hash(tokenizer: PreTrainedTokenizerFast) -> str:
    """Sixteen hex digits that change when the tokenizer would give other ids."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    # Left behind by the last call with padding or truncation; they do not change the ids.
    state.pop("padding", None)
    state.pop("truncation", None)
    blob = json.dumps(state, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(blob.encode()).hexdigest()[:16]


def load_tokenizer(directory: str | Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer directory, as `AutoTokenizer` does, and check that pre-training can use it.

    Raises:
        InputError: no such directory, no tokenizer in it, a special token is missing, or it takes
            apart the Hangul syllables that its entries are made of.
    """
    path = Path(directory)
    own = {name for name in ("tokenizer.json", "vocab.txt") if (path / name).is_file()}
    described = any((path / f"{name}.json").is_file() for name in ("tokenizer_config", "config"))
    # KcELECTRA and KoELECTRA are published with a list of entries and their configurations.
    if "tokenizer.json" not in own and not (own and described):
        raise InputError(
            f"expected a tokenizer directory with tokenizer.json, or with vocab.txt and config.json"
            f", found none at {path}; copy there the one that belongs to the model, or for a new "
            "model make one with `python -m tokenizer train --corpus PATH --output DIR`"
        )
    try:
        # The class that whoever loads the result gets: it may have rules that the file has not.
        reader: Any = AutoTokenizer if described else PreTrainedTokenizerFast
        if "tokenizer.json" not in own and not _names_its_class(path):
            reader = BertTokenizer  # what a list of entries is for
        tokenizer: Any = reader.from_pretrained(
            path, local_files_only=True, trust_remote_code=False
        )
        # Some published files store them; they would cut texts and pad them with [PAD].
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        entries = _entries_of(path)
    except Exception as error:  # the Rust library raises plain Exception for damaged files
        raise InputError(
            f"cannot read the tokenizer at {path}: {error}; copy or train it again"
        ) from error
    missing = [token for token in SPECIAL_TOKENS if token not in entries]
    missing += [
        f"the role of [{role.upper()}]"
        for role in ("mask", "cls", "sep", "pad")
        if getattr(tokenizer, f"{role}_token_id") is None and f"[{role.upper()}]" not in missing
    ]
    if missing:
        raise InputError(
            f"expected special tokens {', '.join(SPECIAL_TOKENS)} in {path}, "
            f"missing {', '.join(missing)}; train a tokenizer with `python -m tokenizer train`"
        )
    refuse_taking_apart(tokenizer, path)
    take_typed_tokens_as_text(tokenizer)
    return tokenizer


def _names_its_class(directory: Path) -> bool:
    """Whether a configuration says which class reads the entries, itself or by the model's kind."""
    for name, key in (("tokenizer_config.json", "tokenizer_class"), ("config.json", "model_type")):
        path = directory / name
        if path.is_file() and key in json.loads(path.read_text(encoding="utf-8")):
            return True
    return False


def _entries_of(directory: Path) -> set[str]:
    """What the files list: transformers adds what is missing, but no embedding for it."""
    path = directory / "tokenizer.json"
    if not path.is_file():
        return set((directory / "vocab.txt").read_text(encoding="utf-8").splitlines())
    state = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = state["model"]["vocab"]
    names = vocabulary if isinstance(vocabulary, dict) else [entry[0] for entry in vocabulary]
    return {*names, *(token["content"] for token in state.get("added_tokens", []))}


def refuse_taking_apart(tokenizer: PreTrainedTokenizerBase, source: str | Path) -> None:
    """Refuse one that makes jamo of its own entries' Hangul syllables: they would never be met.

    Our own tokenizers take apart too, but only syllables that they have no entry for.

    Raises:
        InputError: with the number of such entries and what to change.
    """
    normalizer = getattr(getattr(tokenizer, "backend_tokenizer", None), "normalizer", None)
    whole = [entry for entry in tokenizer.get_vocab() if _SYLLABLE.search(entry)]
    if normalizer is None or not whole:
        return
    kept = sum(_SYLLABLE.search(normalizer.normalize_str(entry)) is not None for entry in whole)
    if kept < len(whole) / 2:
        raise InputError(
            f"expected a tokenizer that keeps Hangul syllables whole, found one at {source} that "
            f"takes apart those of {len(whole) - kept:,} of its own {len(whole):,} Hangul entries; "
            "set do_lower_case and strip_accents to false in its tokenizer_config.json"
        )
