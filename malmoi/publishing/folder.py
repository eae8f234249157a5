"""A classifier as a folder that needs nothing of ours: stock model, ONNX, a web page, a card.

The tokenizer cleans by itself, and the temperature that k-fold fitted is worked into the last
layer, so that everybody gets the labels and the probabilities of `Classifier`. A linear part is
kept beside the encoder, and only Malmoi adds it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tokenizers import Tokenizer
from torch import nn

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError
from malmoi.files import directory_at_once, write_at_once
from malmoi.inference.calibration import CALIBRATION, fitted_temperature
from malmoi.inference.classifier import name_of_model
from malmoi.inference.linear.linear_part import load_linear
from malmoi.inference.onnx_exporting import write_networks
from malmoi.inference.onnx_exports import PUBLISHED_FILES, write_published_description
from malmoi.inference.stock import StockClassifier, load_stock
from malmoi.inference.tokenizing import serialized_tokenizer
from malmoi.model_folders import (
    LINEAR,
    LINEAR_WEIGHTS,
    local_source,
    read_json,
)
from malmoi.publishing.card import CARD, write_card
from malmoi.publishing.portable_tokenizer import portable_tokenizer
from malmoi.transformers_models import save_model

if TYPE_CHECKING:
    from malmoi.inference.description import ModelDescription

PAGE = "index.html"
_TOKENIZER, _TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
# What transformers notes about the machine that saved a tokenizer.
_OF_THE_MACHINE = ("is_local", "local_files_only", "name_or_path")
# The last layer of the stock classifiers, by the attributes that lead to it.
_LAST_LAYERS = ("classifier.out_proj", "classifier", "score")

Say = Callable[[str], None]


def export_folder(source: str | Path, output: Path, *, say: Say = lambda line: None) -> None:
    """Write the folder, whole or not at all.

    Args:
        source: directory, name of a run or of a released model, or Hub id of a classifier.
        output: new or an empty folder.
        say: called with a line before something that takes long.

    Raises:
        InputError: as `Classifier.load`; a classifier whose encoder has no say;
            a tokenizer that only transformers reads; a network that cannot be exported to ONNX.
    """
    folder = Path(local_source(source))
    linear = load_linear(folder)
    if linear is not None and not linear.encoder_weight > 0:
        raise InputError(
            "expected an encoder_weight above 0 in {file}, found {encoder_weight:g}: other "
            "programs have the encoder alone, which says nothing here; give the folder as it is "
            "to somebody who has Malmoi",
            file=folder / LINEAR,
            encoder_weight=linear.encoder_weight,
        )
    stock = load_stock(folder)
    serialized = serialized_tokenizer(stock.tokenizer)
    if serialized is None:
        raise InputError(
            "expected a tokenizer that the tokenizers library reads (tokenizer.json) in {folder}, "
            "found one that only transformers reads; train with an encoder that has one",
            folder=folder,
        )
    # The temperature of a sum is none of the encoder alone.
    calibrated = linear is None and _work_in(fitted_temperature(folder), stock)
    description = stock.description
    with directory_at_once(output.absolute()) as scratch:
        stock.tokenizer.model_max_length = description.max_length
        if linear is not None:
            say(
                "only Malmoi adds the linear part: elsewhere the encoder answers alone, with other "
                "labels"
            )
        with _full_disk_named(output):
            save_model(stock.model, stock.tokenizer, scratch)
            _write_tokenizer(scratch, serialized, description)
            # Only Malmoi reads these, so that its answers stay the same.
            for name in (LINEAR, LINEAR_WEIGHTS, CALIBRATION):
                if (folder / name).is_file():
                    shutil.copyfile(folder / name, scratch / name)
            if calibrated and (found := read_json(folder / CALIBRATION)):
                write_at_once(scratch / CALIBRATION, json.dumps(found | {"temperature": 1.0}))
        (scratch / "onnx").mkdir()
        say("writing the network in ONNX, in fp32 and in int8")
        write_networks(scratch, PUBLISHED_FILES, stock.model, description)
        page = files("malmoi.publishing").joinpath(PAGE).read_text(encoding="utf-8")
        (scratch / PAGE).write_text(page, encoding="utf-8")
        write_card(
            scratch / CARD,
            folder,
            name_of_model(source),
            description,
            calibrated=calibrated,
            linear=linear is not None,
        )
        write_published_description(scratch, description, serialized)


@contextmanager
def _full_disk_named(output: Path) -> Iterator[None]:
    """Let a full disk be that of `output`: a copy that fails names what it reads."""
    try:
        yield
    except OSError as error:
        if not is_full_disk(error):
            raise
        raise OSError(error.errno, error.strerror, str(output)) from error


def _work_in(temperature: float, stock: StockClassifier) -> bool:
    """Divide the logits by the temperature, in the last layer; whether that was possible.

    A model whose last layer is not known keeps its logits, and so its labels.
    """
    if temperature == 1.0 or stock.description.gives == "value":
        return True
    for path in _LAST_LAYERS:
        layer: Any = stock.model
        for part in path.split("."):
            layer = getattr(layer, part, None)
        if isinstance(layer, nn.Linear) and layer.out_features == len(stock.description.labels):
            with torch.no_grad():
                for parameter in layer.parameters():
                    parameter.div_(temperature)
            return True
    return False


def _write_tokenizer(folder: Path, serialized: str, description: ModelDescription) -> None:
    """Replace the tokenizer by one that cleans and cuts, of a class that keeps to its file."""
    tokenizer = Tokenizer.from_str(portable_tokenizer(serialized))
    stored = tokenizer.truncation or {}
    tokenizer.enable_truncation(description.max_length, direction=stored.get("direction", "right"))
    (folder / _TOKENIZER).write_text(tokenizer.to_str(), encoding="utf-8")
    path = folder / _TOKENIZER_CONFIG
    config = json.loads(path.read_text(encoding="utf-8"))
    config = {key: value for key, value in config.items() if key not in _OF_THE_MACHINE}
    # The second text of a pair is told by its token type, whether the tokenizer says so or not.
    inputs = ["input_ids", *["token_type_ids"] * description.token_types, "attention_mask"]
    config |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs}
    path.write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
