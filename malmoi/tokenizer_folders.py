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
        # Of [UNK] nothing can be said: what is left of it may be unknown.
        if token != tokenizer.unk_token
        and tokenizer.convert_tokens_to_ids(token)
        in backend.encode(_BEFORE + token, add_special_tokens=False).ids
    ]
    if reached:
        # Of models that look for whole entries (XLM-R's has a piece "<s>").
        before = [] if backend.normalizer is None else [backend.normalizer]
        apart = [normalizers.Replace(token, f"{token[0]} {token[1:]}") for token in reached]
        backend.normalizer = normalizers.Sequence([*before, *apart])


SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


_SYLLABLE = re.compile("[가-힣]")


# Ours leave 0.004% of their own corpora unknown (measured on six of them).
MANY_UNKNOWN = 0.05


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
