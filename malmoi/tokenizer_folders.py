"""Tokenizer folders: loaded as `AutoTokenizer` does, checked, and saved for any transformers.

Special tokens that somebody typed are text: "[SEP]" in a review ends nothing.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, normalizers
from transformers import (
    AutoTokenizer,
    BertTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from malmoi.errors import InputError
from malmoi.loading import loading
from malmoi.messages import Phrase
from malmoi.model_folders import CONFIG, read_json

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# Ours leave 0.004% of their own corpora unknown (measured on six of them).
MANY_UNKNOWN = 0.05
_OWN_CONFIG = "tokenizer_config.json"
_SYLLABLE = re.compile("[가-힣]")
# A word in front, for some tokenizers treat the beginning of a text in another way.
_BEFORE = "가 "


def take_typed_tokens_as_text(tokenizer: PreTrainedTokenizerBase) -> None:
    """Let the tokenizer cut a "[SEP]" of a text like any word, now and when saved and loaded.

    The special ones are put in by id alone: [CLS] and [SEP] around a text, [PAD] behind it, [MASK]
    in pre-training. Stock libraries make them of text, too, unless `split_special_tokens` is set.
    """
    tokenizer.split_special_tokens = True
    tokenizer.init_kwargs["split_special_tokens"] = True  # what is saved
    backend: Tokenizer | None = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return
    backend.encode_special_tokens = True
    reached = [
        token
        for token in tokenizer.all_special_tokens
        # Nothing can be said of [UNK]: what is left of it may be unknown.
        if token != tokenizer.unk_token
        and tokenizer.convert_tokens_to_ids(token)
        in backend.encode(_BEFORE + token, add_special_tokens=False).ids
    ]
    if reached:
        # Tokenizers that look for whole entries have them (XLM-R's has a piece "<s>").
        before = [] if backend.normalizer is None else [backend.normalizer]
        apart = [normalizers.Replace(token, f"{token[0]} {token[1:]}") for token in reached]
        backend.normalizer = normalizers.Sequence([*before, *apart])


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, directory: Path) -> None:
    """Write what `AutoTokenizer` loads, in transformers 4 as in 5.

    The name that 5 gives the class of a fast tokenizer is unknown to 4; the one of 4 both know.
    """
    tokenizer.save_pretrained(directory)
    path = directory / _OWN_CONFIG
    config = json.loads(path.read_text(encoding="utf-8"))
    if config.get("tokenizer_class") == "TokenizersBackend":
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
        config.pop("backend", None)
        path.write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def tokenizer_hash(tokenizer: PreTrainedTokenizerFast) -> str:
    """Sixteen hex digits that change when the tokenizer would give other ids."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    # Left behind by the last call with padding or truncation; they do not change the ids.
    state.pop("padding", None)
    state.pop("truncation", None)
    blob = json.dumps(state, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(blob.encode()).hexdigest()[:16]


def load_tokenizer(source: str | Path, *, needs_padding: bool = True) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder, or beside a model, as `AutoTokenizer` loads it.

    Args:
        source: directory, or Hub id in the cache.
        needs_padding: refuse one without a padding token.

    Raises:
        InputError: there is none, it cannot be read, or takes its own Hangul entries apart.
    """
    with loading(str(source), Phrase("the tokenizer")):
        tokenizer: Any = _reader_for(Path(source)).from_pretrained(source, trust_remote_code=False)
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise InputError("{source} has no tokenizer (its vocabulary is empty)", source=source)
    if needs_padding and tokenizer.pad_token_id is None:
        raise InputError(
            "the tokenizer of {source} has no padding token, which batches need", source=source
        )
    refuse_taking_apart(tokenizer, source)
    take_typed_tokens_as_text(tokenizer)
    if tokenizer.is_fast:
        # Some published files store them; they would cut texts and pad them with [PAD].
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    return tokenizer


def _reader_for(directory: Path) -> Any:
    """The class that everybody else loads it with: it may have rules that the file has not."""
    if (directory / "tokenizer.json").is_file():
        described = any((directory / name).is_file() for name in (_OWN_CONFIG, CONFIG))
        return AutoTokenizer if described else PreTrainedTokenizerFast
    if (directory / "vocab.txt").is_file() and not _names_its_class(directory):
        return BertTokenizer  # what a list of entries is for
    return AutoTokenizer


def _names_its_class(directory: Path) -> bool:
    """Whether a configuration says which class reads the entries, itself or by the model's kind."""
    named = ((_OWN_CONFIG, "tokenizer_class"), (CONFIG, "model_type"))
    return any(key in read_json(directory / name) for name, key in named)


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
            "expected a tokenizer that keeps Hangul syllables whole, found one at {source} that "
            "takes apart those of {taken_apart:,} of its own {entries:,} Hangul entries; set "
            "do_lower_case and strip_accents to false in its tokenizer_config.json",
            source=source,
            taken_apart=len(whole) - kept,
            entries=len(whole),
        )
