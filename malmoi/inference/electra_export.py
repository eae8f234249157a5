"""An ELECTRA that Malmoi has saved to a network: no torch, in a second.

Of a classifier an entry of the cache, of an encoder without a head one in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from malmoi.inference.description import description_of
from malmoi.inference.onnx_exports import FILES, TOKENIZER, Exported, find_exported, write_entry
from malmoi.model_folders import WEIGHTS, read_config, read_json

_TOKENIZER_CONFIG = "tokenizer_config.json"
# What transformers 4 and 5 call a tokenizer whose file says all.
_PLAIN_TOKENIZERS = ("PreTrainedTokenizerFast", "TokenizersBackend")
_FORMATS = ("F16", "F32")
# transformers writes 1e30 where there is no bound.
_NO_LENGTH = 1 << 31
EMBEDDINGS = "electra.embeddings"


def can_export(folder: Path, *, head: bool = True) -> bool:
    """Whether it is built without torch, as a classifier or without a head; reads no weights."""
    stated = read_json(folder / _TOKENIZER_CONFIG)
    # Ours take a typed "[SEP]" for text, and were looked through when they were first loaded.
    ours = stated.get("split_special_tokens") and (folder / TOKENIZER).is_file()
    if not ours or stated.get("tokenizer_class") not in _PLAIN_TOKENIZERS:
        return False
    try:
        with safe_open(folder / WEIGHTS, framework="numpy") as tensors:
            parts = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118
    except (OSError, SafetensorError):
        return False
    shapes = {name: tuple(part.get_shape()) for name, part in parts.items()}
    known = all(part.get_dtype() in _FORMATS for part in parts.values())
    return known and fits(read_config(folder), shapes, head=head)


def fits(
    config: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], *, head: bool = True
) -> bool:
    """Whether `electra_network` builds what a config.json describes, of weights of these shapes."""
    classifies = config.get("architectures") == ["ElectraForSequenceClassification"]
    plain = (
        (classifies if head else config.get("model_type") == "electra")
        and config.get("hidden_act", "gelu") == "gelu"
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder")
        and not config.get("add_cross_attention")
    )
    try:
        return (
            plain
            and dict(_expected_shapes(config, head)).items() <= shapes.items()
            and config["hidden_size"] % config["num_attention_heads"] == 0
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return False


def _expected_shapes(
    config: Mapping[str, Any], head: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    embedding = config["embedding_size"]
    yield f"{EMBEDDINGS}.word_embeddings.weight", (config["vocab_size"], embedding)
    positions = config["max_position_embeddings"]
    yield f"{EMBEDDINGS}.position_embeddings.weight", (positions, embedding)
    yield f"{EMBEDDINGS}.token_type_embeddings.weight", (config["type_vocab_size"], embedding)
    products = []
    if head:
        outputs = len(config["id2label"])
        products += [("classifier.dense", hidden, hidden), ("classifier.out_proj", outputs, hidden)]
    norms = [(f"{EMBEDDINGS}.LayerNorm", embedding)]
    if embedding != hidden:
        products += [(f"{EMBEDDINGS}_project", hidden, embedding)]
    for number in range(config["num_hidden_layers"]):
        layer = f"electra.encoder.layer.{number}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            products += [(f"{layer}.attention.{name}", hidden, hidden)]
        products += [(f"{layer}.intermediate.dense", inner, hidden)]
        products += [(f"{layer}.output.dense", hidden, inner)]
        norms += [(f"{layer}.{part}.LayerNorm", hidden) for part in ("attention.output", "output")]
    for name, rows, columns in products:
        yield f"{name}.weight", (rows, columns)
        yield f"{name}.bias", (rows,)
    for name, width in norms:
        yield f"{name}.weight", (width,)
        yield f"{name}.bias", (width,)


def export_electra(folder: Path, entry: Path) -> Exported | None:
    """Write an entry of the cache; None where only transformers and torch can.

    Raises:
        InputError: its configuration names no labels, or thresholds that do not fit them.
        OSError: as `write_entry`.
    """
    if not can_export(folder):
        return None
    from malmoi.inference.electra_network import write_electra  # a tenth of a second: onnx

    config = read_config(folder)
    found = read_tokenizer(folder, config)
    if found is None:
        return None
    serialized, facts = found
    description = description_of(config, str(folder), **facts)
    weights = load_file(folder / WEIGHTS)
    with write_entry(entry, description, serialized) as scratch:
        write_electra(scratch, FILES, config, weights)
    return find_exported(entry)


def read_tokenizer(folder: Path, config: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """tokenizer.json, and what of a `ModelDescription` hangs on it; None of one without padding."""
    stated = read_json(folder / _TOKENIZER_CONFIG)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    pad = tokenizer.token_to_id(str(stated.get("pad_token")))
    if pad is None or max(tokenizer.get_vocab().values()) >= config["vocab_size"]:
        return None
    tokenizer.no_padding()
    tokenizer.enable_truncation(1, direction=stated.get("truncation_side", "right"))
    bounds = config["max_position_embeddings"], stated.get("model_max_length") or _NO_LENGTH
    facts = {
        "max_length": int(min(bounds)),
        "pad": pad,
        "token_types": config["type_vocab_size"] > 1,
    }
    return tokenizer.to_str(), facts
