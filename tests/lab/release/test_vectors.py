"""A sentence encoder is unpacked from four bits and cut, with an image made here."""

import struct
from pathlib import Path

import numpy as np
import pytest

from lab.release import vectors as made
from malmoi.inference.vectors.sentence_encoder import SentenceEncoder
from malmoi.text.cleaning.cleaner import clean_text

HIDDEN, INNER = 32, 64
PIECES = [
    *made.SPECIAL,
    "▁",
    "좋",
    "아요",
    "▁좋",
    "나",
    "빠",
    "q",
    "u",
    "e",
    "r",
    "y",
    ":",
    "▁query",
]
TEXTS = ["좋아요", "좋아요 좋", "나빠"] * made.FEWEST_TIMES


def blocks(numbers: np.ndarray) -> bytes:
    """Q4_0: each block of 32 by its largest number."""
    packed = b""
    for block in numbers.reshape(-1, made.BLOCK):
        scale = np.float16(np.abs(block).max() / 7 or 1)
        halves = np.clip(np.round(block / np.float32(scale)) + 8, 0, 15).astype(np.uint8)
        packed += scale.tobytes() + (halves[:16] | halves[16:] << 4).tobytes()
    return packed


def image(random: np.random.Generator) -> bytes:
    """A packed model of one layer."""
    shapes = {"emb.word": (len(PIECES), HIDDEN), "emb.pos": (64, HIDDEN), "emb.type": (2, HIDDEN)}
    shapes |= {"emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
    outputs = dict.fromkeys(made.LAYER, HIDDEN) | {"fi": INNER}
    for name, outs in outputs.items():
        ins = INNER if name == "fo" else HIDDEN
        shapes[f"l0.{name}.w"] = (HIDDEN,) if name in ("aln", "oln") else (outs, ins)
        shapes[f"l0.{name}.b"] = (outs,)
    names = [piece.encode() for piece in PIECES]
    ends = np.cumsum([0, *map(len, names)]).astype("<u4")
    blob = b"".join(names)
    scores = -np.arange(len(PIECES), dtype="<f4") / 10
    head = made.MAGIC + struct.pack("<i7i", 1, HIDDEN, 1, 2, INNER, len(PIECES), 64, 2)
    head += struct.pack("<fi5iQ", 1e-12, made.BLOCK, len(PIECES), 0, 2, 1, 3, len(blob))
    head += ends.tobytes() + scores.tobytes() + blob + struct.pack("<iI", 0, 0)
    head += struct.pack("<i", len(shapes))
    start = len(head) + sum(2 + len(name) + 1 + 4 + 16 for name in shapes)
    data = b""
    for name, shape in shapes.items():
        numbers = random.normal(size=shape).astype("<f4") / 4
        quantized = len(shape) == 2 and name not in ("emb.pos", "emb.type")
        raw = blocks(numbers) if quantized else numbers.tobytes()
        head += struct.pack("<H", len(name)) + name.encode()
        head += struct.pack("<BIQQ", quantized, numbers.size, start + len(data), len(raw))
        data += raw
    return head + data


def test_what_is_cut_out_says_the_same_of_texts_with_these_pieces(tmp_path: Path) -> None:
    read = made.read_image(image(np.random.default_rng(0)))
    assert read.pieces == PIECES and read.sizes["hidden"] == HIDDEN
    places = made.kept_places(read, map(clean_text, TEXTS))
    assert {"좋", "빠"} & {read.pieces[place] for place in places}
    assert len(places) < len(PIECES) and places[:4] == [0, 1, 2, 3]
    whole = made.tokenizer_of(read.pieces, read.scores.tolist())
    cut = made.tokenizer_of([read.pieces[p] for p in places], read.scores[places].tolist())
    assert [cut.encode(text).tokens for text in TEXTS] == [whole.encode(t).tokens for t in TEXTS]
    before = made.vectors(made.bert_of(read, range(len(PIECES))), whole, TEXTS)
    model = made.bert_of(read, places)
    assert made.vectors(model, cut, TEXTS) == pytest.approx(before, abs=1e-5)
    made.write_folder(tmp_path / "out", model, cut)
    found = SentenceEncoder(tmp_path / "out")(TEXTS)
    assert (found * before).sum(axis=1).min() > 0.99
    with pytest.raises(ValueError, match="expected an image"):
        made.read_image(b"PK\x03\x04")
