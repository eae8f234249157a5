"""Make an ONNX network of a stock classifier, in fp32 and in int8, whole or not at all."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import nn

from malmoi.command_line import is_full_disk
from malmoi.errors import InputError
from malmoi.inference.description import ModelDescription
from malmoi.inference.electra_export import fits
from malmoi.inference.electra_network import INPUTS, OPSET, write_electra
from malmoi.inference.engine import EngineName
from malmoi.inference.first_token import logits_of
from malmoi.inference.onnx_exports import FILES, Exported, find_exported, write_entry
from malmoi.installed import need
from malmoi.messages import Phrase

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# What exports, and what quantizes.
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
# What fails is raised, too.
_FATAL_ONLY = 4


class _Logits(nn.Module):
    """A function of tensors as a module, which the exporter wants."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model  # so that its weights are found
        self.compute = logits_of(model)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        return self.compute(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )


def export_classifier(
    path: Path, model: PreTrainedModel, description: ModelDescription, tokenizer: str | None
) -> Exported:
    """Write the entry of the cache at `onnx_exports.entry_path`, and bound the cache.

    Raises:
        InputError, OSError: as `write_networks`.
    """
    with write_entry(path, description, tokenizer) as scratch:
        write_networks(scratch, FILES, model, description)
    found = find_exported(path)
    assert found is not None
    return found


def write_networks(
    folder: Path,
    files: Mapping[EngineName, str],
    model: PreTrainedModel,
    description: ModelDescription,
) -> None:
    """Write the network in fp32 and in int8.

    Args:
        files: name of the file of either engine, below `folder`.
        model: in eval mode, fp32, on the CPU.

    Raises:
        InputError: the exporter does not know this network, or is not installed.
        OSError: errno.ENOSPC when the disk is full, whoever noticed it.
    """
    for package in _PACKAGES:
        need(
            Phrase("an ONNX network"), package, instead=f"pip install -c constraints.txt {package}"
        )
    exact, quantized = folder / files["onnx-fp32"], folder / files["onnx-int8"]
    try:
        with _quiet():
            config = model.config.to_dict() | {"architectures": [type(model).__name__]}
            weights = {name: values.numpy() for name, values in model.state_dict().items()}
            if fits(config, {name: values.shape for name, values in weights.items()}):
                write_electra(folder, files, config, weights)
            else:
                _export(model, exact, description)
                _quantize(exact, quantized)
            _check(model, exact, quantized, description)
    except MemoryError:
        raise
    except Exception as error:  # whatever exporter and quantizer have
        if not isinstance(error, OSError) or is_full_disk(error):
            _raise_if_full(folder, model, error)
        if isinstance(error, OSError):
            raise
        name = type(model).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise InputError(
            "cannot export {article} {name} to ONNX: {error}",
            article=article,
            name=name,
            error=" ".join(str(error).split())[:200],
        ) from error


def _raise_if_full(folder: Path, model: PreTrainedModel, error: Exception) -> None:
    """Raise OSError(ENOSPC), with the name of the place, where another network has no room.

    The C++ halves of both libraries write files that end where the disk is full, say nothing, and
    then complain of what they read.
    """
    needed = sum(weights.numel() for weights in model.parameters()) * 4  # fp32
    # The folder itself is a hidden one that is gone when somebody reads its name.
    for place in (folder.parent, Path(tempfile.gettempdir())):
        if shutil.disk_usage(place).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place)) from error


def _export(model: PreTrainedModel, path: Path, description: ModelDescription) -> None:
    # Two texts, the second one shorter: sizes of 1 would be taken for constants.
    length = min(8, description.max_length)
    ids = torch.full((2, length), description.pad, dtype=torch.int64)
    mask = torch.ones_like(ids)
    mask[1, length // 2 :] = 0
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    program = torch.onnx.export(
        _Logits(model).eval(),
        (ids, mask, torch.zeros_like(ids)),
        input_names=list(INPUTS),
        output_names=["logits"],
        dynamo=True,
        dynamic_shapes=(sizes,) * len(INPUTS),
        opset_version=OPSET,
        verbose=False,
    )
    assert program is not None
    for node in program.model.graph.all_nodes():
        # Where in which file of this machine it was written: for nobody who gets the network.
        node.metadata_props.clear()
    program.save(path, external_data=False)


def _check(
    model: PreTrainedModel, exact: Path, quantized: Path, description: ModelDescription
) -> None:
    """Compute batches of other sizes than the exporter has seen.

    Raises:
        ValueError: the networks cannot, or the exact one has other logits than the model.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    for texts, longest in ((2, 12), (3, 5), (1, 1)):
        length = min(longest, description.max_length)
        ids = torch.arange(texts * length).reshape(texts, length) % model.config.vocab_size
        mask = torch.ones_like(ids)
        mask[-1, max(1, length - 2) :] = 0
        inputs = dict(zip(INPUTS, (ids, mask, torch.zeros_like(ids)), strict=True))
        with torch.inference_mode():
            expected = logits_of(model)(**inputs)
        for path in (exact, quantized):
            session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
            taken = {item.name: inputs[item.name].numpy() for item in session.get_inputs()}
            found = torch.from_numpy(session.run(None, taken)[0])
            if found.shape != expected.shape:
                raise ValueError(f"logits of shape {found.shape}, not {expected.shape}")
            if path is exact and not torch.allclose(found, expected, atol=1e-2, rtol=1e-2):
                raise ValueError("its logits are not those of the model")


def _quantize(source: Path, target: Path) -> None:
    """Weights of matrix products in int8, one scale a column; activations as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(
        source,
        target,
        op_types_to_quantize=["MatMul", "Gemm"],
        weight_type=QuantType.QInt8,
        per_channel=True,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter and the quantizer tell about themselves what no user can change."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
