"""A folder and the name of an engine to what predicts: network, tokenizer, description.

What an earlier run has exported, or what the folder of a published model has, is taken as it is,
and an ELECTRA classifier of ours is exported at once, both without torch; else the stock model is
loaded and checked, and exported where the engine asks for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from malmoi import cache
from malmoi.errors import InputError
from malmoi.inference.description import ModelDescription
from malmoi.inference.electra_export import can_export, export_electra
from malmoi.inference.engine import (
    ENGINE_VARIABLE,
    Engine,
    EngineChoice,
    EngineName,
    check_engine,
)
from malmoi.inference.onnx_exports import (
    FILES,
    KIND,
    TOKENIZER,
    Exported,
    any_exported,
    entry_path,
    fastest_export,
    find_exported,
    find_published,
    measured_engine,
    write_measurement,
)
from malmoi.inference.processor import has_gpu, suited_engine
from malmoi.inference.tokenizing import (
    FastTokenizer,
    SlowTokenizer,
    TextTokenizer,
    serialized_tokenizer,
    text_tokenizer,
)
from malmoi.installed import INSTALL_TORCH, TORCH, need, torch_is_there
from malmoi.messages import Phrase

if TYPE_CHECKING:
    from malmoi.inference.stock import StockClassifier

_INSTALL_ONNXRUNTIME = "pip install -c constraints.txt onnxruntime"
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Opened:
    """All that turns clean texts into logits."""

    engine: Engine
    tokenizer: TextTokenizer
    description: ModelDescription


def open_classifier(
    folder: Path, engine: str, *, threads: int | None = None, say: Say | None = None
) -> Opened:
    """Open the stock classifier in a folder, as `malmoi.inference.classifier.Classifier.load`."""
    choice = check_engine(engine, "engine")
    if choice == "auto" and (named := os.environ.get(ENGINE_VARIABLE)):
        choice = check_engine(named, ENGINE_VARIABLE)
    if choice in ("fastest", "torch", "torch-fp32", "torch-bf16"):
        need(
            Phrase("the engine {choice}", choice=choice),
            *TORCH,
            instead=Phrase("take onnx-fp32 or onnx-int8"),
        )
    if not torch_is_there():
        return _without_torch(folder, choice, threads)
    if choice == "auto":
        choice = known_engine(folder) or "auto"
    if choice in ("auto", "fastest"):
        return _measured(folder, threads, say)
    if choice in ("onnx-fp32", "onnx-int8"):
        return _with_onnx(folder, [choice], threads, say)[choice]
    return open_stock(_load(folder), choice)


def known_engine(folder: Path) -> EngineName | None:
    """The engine that `auto` takes at once; None where it compares them first.

    What was measured; of an ELECTRA classifier that is exported without torch, on a CPU, what the
    processor is good at.
    """
    if measured := measured_engine(folder):
        return measured
    return suited_engine() if not has_gpu() and can_export(folder) else None


def _without_torch(folder: Path, choice: EngineChoice, threads: int | None) -> Opened:
    """Take what was exported where torch was; for `auto` what is fastest here, else there."""
    need(Phrase("an ONNX engine"), "onnxruntime", instead=_INSTALL_ONNXRUNTIME)
    exportable = can_export(folder)
    known = choice if choice in ("onnx-fp32", "onnx-int8") else fastest_export(folder)
    if known is None:
        known = suited_engine() if exportable else "onnx-fp32"
    if exportable:
        return _with_onnx(folder, [known], threads, None)[known]
    exported = find_published(folder) or any_exported(folder)
    if exported is None or exported.tokenizer is None:
        raise InputError(
            "no ONNX export of {folder} in {cache}, and torch and transformers, which make one, "
            "are not installed; malmoi export, where they are, writes a folder that has one",
            folder=folder,
            cache=cache.CACHE / KIND,
        )
    return _of_exported(folder, exported, known, threads)


def _load(folder: Path) -> StockClassifier:
    from malmoi.inference.stock import load_stock  # torch and transformers

    return load_stock(folder)


def open_stock(stock: StockClassifier, choice: EngineChoice = "torch") -> Opened:
    """A stock model that is in memory, for torch on the best device; it is taken over."""
    from malmoi.devices import choose_device
    from malmoi.inference.torch_engine import TorchEngine

    name: EngineName | None = choice if choice in ("torch-fp32", "torch-bf16") else None
    return Opened(
        engine=TorchEngine(stock.model, choose_device(), name),
        tokenizer=text_tokenizer(stock.tokenizer, stock.description),
        description=stock.description,
    )


def _with_onnx(
    folder: Path,
    names: Sequence[EngineName],
    threads: int | None,
    say: Say | None,
    stock: StockClassifier | None = None,
) -> dict[EngineName, Opened]:
    """Open ONNX engines of what was exported, or of a new export where that is damaged."""
    need(Phrase("an ONNX engine"), "onnxruntime", instead=_INSTALL_ONNXRUNTIME)
    entry = entry_path(folder)
    for exported in (find_published(folder), find_exported(entry)):
        if exported is not None:
            with suppress(InputError):
                return {name: _of_exported(folder, exported, name, threads) for name in names}
    cache.remove(entry)
    with TemporaryDirectory(prefix="malmoi-onnx-") as place:
        try:
            found = export_electra(folder, entry)
        except OSError:  # nothing can be kept here
            found = export_electra(folder, Path(place) / entry.name)
        if found is not None:
            return {name: _of_exported(folder, found, name, threads) for name in names}
    need(Phrase("the ONNX network of {folder}", folder=folder), *TORCH, instead=INSTALL_TORCH)
    if say is not None:
        say("exporting the model to ONNX, once")
    from malmoi.inference.onnx_exporting import export_classifier

    stock = stock or _load(folder)
    serialized = serialized_tokenizer(stock.tokenizer)
    try:
        exported = export_classifier(entry, stock.model, stock.description, serialized)
    except InputError as error:
        raise InputError("{error}; take the engine torch-fp32", error=error) from error
    return {name: _of_exported(folder, exported, name, threads) for name in names}


def _of_exported(folder: Path, exported: Exported, name: EngineName, threads: int | None) -> Opened:
    from malmoi.inference.onnx_engine import OnnxEngine

    try:
        engine = OnnxEngine(exported.network(name), name, threads)
    except Exception as error:  # whatever the library has for a damaged file
        raise InputError(
            "expected an ONNX network in {network}, found {error}; export the model again, where "
            "torch is installed",
            network=exported.path / exported.files[name],
            error=" ".join(str(error).split())[:200],
        ) from error
    if exported.tokenizer is not None:
        try:
            tokenizer: TextTokenizer = FastTokenizer(exported.tokenizer, exported.description)
        except Exception as error:  # a bare one, of a damaged file
            raise InputError(
                "expected a tokenizer in {file}, found {error}; export the model again, where "
                "torch is installed",
                file=exported.path / TOKENIZER,
                error=" ".join(str(error).split())[:200],
            ) from error
    else:
        from malmoi.transformers_models import load_tokenizer  # transformers

        tokenizer = SlowTokenizer(load_tokenizer(folder), exported.description)
    return Opened(engine=engine, tokenizer=tokenizer, description=exported.description)


def _measured(folder: Path, threads: int | None, say: Say | None) -> Opened:
    """Take the fastest engine that agrees with the reference, and remember which it was.

    Where nothing can be compared (a GPU, no sample texts, a network that cannot be exported) it is
    torch in the number format of the device.
    """
    from malmoi.devices import choose_device, prefers_bf16
    from malmoi.inference.engine_comparison import REFERENCE, calibration_texts, measure

    stock = _load(folder)
    device = choose_device()
    sample = calibration_texts(stock.description) if device.type == "cpu" else None
    if sample is None:
        return open_stock(stock, "torch")
    try:
        onnx = _with_onnx(folder, list(FILES), threads, say, stock)
    except (InputError, OSError):  # a folder that cannot be written, a full disk
        return open_stock(stock, "torch")
    if say is not None:
        say("comparing the engines on this machine, once")
    opened: dict[EngineName, Opened] = {REFERENCE: open_stock(stock, REFERENCE)}
    if prefers_bf16(device):
        opened["torch-bf16"] = open_stock(_load(folder), "torch-bf16")
    opened |= onnx
    texts, targets = sample
    pairs = texts[1:] + texts[:1] if stock.description.pairs else None
    tokens = opened[REFERENCE].tokenizer(texts, pairs)
    engines = {name: one.engine for name, one in opened.items()}
    found = measure(engines, tokens, stock.description, targets)
    with suppress(OSError):  # it is measured again
        write_measurement(folder, {"model": str(folder), **found})
    return opened[found["engine"]]
