"""Models and tokenizers of transformers: loaded from a folder with one clear error, and saved.

Weights are safetensors only, nothing is unpickled, remote code is never run. Special tokens that
somebody typed are text: "[SEP]" in a review ends nothing. torch is imported by the first model.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer, normalizers
from transformers import (
    AutoTokenizer,
    BertTokenizer,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging as transformers_logging

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError
from malmoi.files import full_disk_as_oserror
from malmoi.messages import Phrase
from malmoi.model_folders import CONFIG, read_config, read_json, weight_files

if TYPE_CHECKING:
    # A third of a second of imports that a type alone needs.
    from transformers import PreTrainedModel

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_OWN_CONFIG = "tokenizer_config.json"
_SYLLABLE = re.compile("[가-힣]")
# A word in front, for some tokenizers treat the beginning of a text in another way.
_BEFORE = "가 "
_NO_LENGTH = 1 << 31
# Keys of configurations. Defaults of the classes are BERT's, which need not be this network's.
_TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
_SIZES = {
    "max_position_embeddings": "embeddings.position_embeddings.weight",
    "type_vocab_size": _TOKEN_TYPES,
}


@contextmanager
def loading(source: str, what: str) -> Iterator[None]:
    """Turn what transformers raises for a bad or unreachable `source` into one InputError."""
    try:
        with quiet_transformers():
            yield
    except InputError:
        raise
    except SafetensorError as error:
        raise InputError(
            "the weights in {source} are damaged ({error}); copy or train them again",
            source=source,
            error=_one_line(error),
        ) from error
    except MemoryError:
        raise
    except Exception as error:
        # A damaged file makes transformers raise nearly everything: AttributeError,
        # ZeroDivisionError, dataclass errors, and tokenizers a bare Exception.
        if isinstance(error, OSError) and is_full_disk(error):
            raise  # A full disk while downloading: the command line has its own line for it.
        said = _one_line(error)
        if "trust_remote_code" in str(error):
            raise InputError(
                "cannot load {what} of {source}: it brings code of its own, which is never run; "
                "take a model whose class transformers has",
                what=what,
                source=source,
            ) from error
        if not isinstance(error, OSError | ValueError | RuntimeError):
            said = f"{type(error).__name__}: {said}"  # such as 'x' of a KeyError
        raise InputError(
            "cannot load {what} of {source}: {said}", what=what, source=source, said=said
        ) from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else text[:297] + "..."


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


def load_model(
    model_class: Any, folder: str | Path, what: str, **options: Any
) -> tuple[Any, dict[str, Any]]:
    """A stock network in fp32 and in eval mode, and transformers' report on its weights.

    Args:
        model_class: a class of transformers, or one of its Auto classes.
        folder: has configuration and safetensors.
        what: the network, for messages.
        options: further ones of `from_pretrained`.

    Raises:
        InputError: it cannot be loaded.
    """
    with loading(str(folder), what):
        model, report = model_class.from_pretrained(
            folder,
            dtype="float32",  # of half of it, layers in two formats do not fit each other
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    return model, report


def check_vocabulary(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str
) -> None:
    """Refuse a tokenizer that can give the model an id it has no embedding for.

    Raises:
        InputError: with both sizes.
    """
    known = int(model.get_input_embeddings().num_embeddings)  # type: ignore[arg-type]
    largest = max(tokenizer.get_vocab().values())
    if largest >= known:
        raise InputError(
            "tokenizer and model of {source} do not belong together: the tokenizer has ids up to "
            "{largest}, the model {known} embeddings",
            source=source,
            largest=largest,
            known=known,
        )


def longest_input(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Most tokens of one text, [CLS] and [SEP] included, that model and tokenizer both allow.

    512, as BERT has, where neither says.
    """
    stated = [position_count(model), tokenizer.model_max_length]
    # transformers fills in 1e30 where there is none.
    bounds = [int(length) for length in stated if length and 0 < length < _NO_LENGTH]
    return min(bounds, default=512)


def complete_config(config: Any, folder: Path) -> Any:
    """`config` with the positions and token types that the weights have where it states none."""
    try:
        stated = read_config(folder)
        silent = {end: name for name, end in _SIZES.items() if name not in stated}
        for file in weight_files(folder) if silent else ():
            with safe_open(file, framework="pt") as tensors:
                for key in tensors.keys():  # noqa: SIM118
                    name = next((name for end, name in silent.items() if key.endswith(end)), None)
                    if name is not None and hasattr(config, name):
                        setattr(config, name, tensors.get_slice(key).get_shape()[0])
    except (OSError, ValueError, SafetensorError):
        pass  # who loads them says so
    return config


def fill_token_types(model: PreTrainedModel, missing: Collection[str]) -> set[str]:
    """Zero for token types that were not saved, which adds nothing; the keys that this settles."""
    settled = {key for key in missing if key.endswith(_TOKEN_TYPES)}
    for key in settled:
        model.get_parameter(key).data.zero_()
    return settled


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


def takes_token_types(model: PreTrainedModel) -> bool:
    """Whether a model tells the second text of a pair by its token type.

    RoBERTa and its kind have one type, DistilBERT none; the [SEP] between the texts tells them.
    """
    types = getattr(model.config, "type_vocab_size", 0) or 0
    return types > 1 and "token_type_ids" in signature(model.forward).parameters


def position_count(model: PreTrainedModel) -> int | None:
    """Most tokens that a model has positions for; None where it has no such bound.

    RoBERTa begins to count behind the padding token's id: the first positions are never used.
    """
    positions = getattr(model.config, "max_position_embeddings", None)
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(module, "num_embeddings"):
            unused = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - unused
    return int(positions) if isinstance(positions, int) and positions > 0 else None


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
            "the tokenizer of {source} has no padding token, which batches need; name one as "
            "pad_token in its {file}, such as its end token",
            source=source,
            file=_OWN_CONFIG,
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
    # Whether a configuration says which class reads the entries, itself or by the model's kind.
    named = ((_OWN_CONFIG, "tokenizer_class"), (CONFIG, "model_type"))
    if any(key in read_json(directory / name) for name, key in named):
        return AutoTokenizer
    return BertTokenizer if (directory / "vocab.txt").is_file() else AutoTokenizer


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
