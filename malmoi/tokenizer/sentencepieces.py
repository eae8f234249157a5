"""Unigram and BPE by sentencepiece, and their conversion to `tokenizers` without a change of ids.

Sentencepiece normalises by the table that the converted tokenizer carries too, and is given NFC
text; what is not in its alphabet it spells in bytes, so nothing is unknown (measured: 0.1% more
tokens). Vocabulary order: [PAD] [UNK] [CLS] [SEP] [MASK], 256 bytes, pieces.
"""

import io
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from malmoi.tokenizer.alphabet import Alphabet, build_normalizer
from malmoi.tokenizer.sampling import MORPHEME_MARK
from malmoi.transformers_models import SPECIAL_TOKENS

_SPACE = "\u2581"
# Its classes are made at import, where a type checker does not see them.
_messages: Any = sentencepiece_model_pb2
_Piece = _messages.ModelProto.SentencePiece
# Sentencepiece adds up scores in 32 bits, `tokenizers` in 64: ".." + "." and "." + ".." came out
# differently in 0.8% of 95,000 texts (measured). Multiples of 1/256 add up exactly in both, to
# about 6,000 pieces a text, and a tie goes to the same side.
_SCORE_STEPS = 256
# The 5.7 million words of the measured reviews have 1.2 million forms. All of them count: without
# those seen once BPE needed 2% more tokens (measured). The bound is for memory (assumption).
_MAX_WORDS = 4_000_000
# Below any sum of scores of pieces, so that text never becomes this entry.
UNREACHABLE_SCORE = -1e6
# Threads share the sums of unigram's EM: another number would add them up in another order.
_NUM_THREADS = 2
# Candidates that unigram starts from; the library's million gave 0.1% more tokens (measured).
_SEED_PIECES = 300_000


def train_sentencepiece(
    words: Mapping[str, int],
    alphabet: Alphabet,
    *,
    model: Literal["unigram", "bpe"],
    vocab_size: int,
) -> bytes:
    """Train a sentencepiece model on counted words; the same words give the same model.

    Words instead of sentences give the same vocabulary in a fraction of time and memory, for no
    piece crosses a space.

    Args:
        words: counts of words; `MORPHEME_MARK` inside a word is a place no piece crosses.
        vocab_size: entries at most; a small corpus gives fewer.

    Returns:
        A serialised `ModelProto`. It expects text in NFC.
    """
    normalizer, charsmap = build_normalizer(alphabet)
    written = io.BytesIO()
    with tempfile.TemporaryDirectory(prefix="malmoi-words-") as folder:
        file = Path(folder) / "words.tsv"
        _write_words(words, alphabet, normalizer, file)
        sentencepiece.SentencePieceTrainer.train(
            input=str(file),
            input_format="tsv",
            model_writer=written,
            model_type=model,
            vocab_size=vocab_size,
            hard_vocab_limit=False,
            pad_id=0,
            unk_id=1,
            bos_id=2,
            eos_id=3,
            pad_piece="[PAD]",
            unk_piece="[UNK]",
            bos_piece="[CLS]",
            eos_piece="[SEP]",
            control_symbols=["[MASK]"],
            byte_fallback=True,
            normalization_rule_name="identity",
            character_coverage=1.0,
            required_chars="".join(alphabet.characters),
            pretokenization_delimiter=MORPHEME_MARK,
            seed_sentencepiece_size=_SEED_PIECES,
            num_threads=_NUM_THREADS,
            minloglevel=2,
        )
    proto = _messages.ModelProto.FromString(written.getvalue())
    proto.normalizer_spec.name = "user_defined"
    proto.normalizer_spec.precompiled_charsmap = charsmap
    proto.trainer_spec.ClearField("input")  # a temporary path
    for piece in proto.pieces:
        piece.score = round(piece.score * _SCORE_STEPS) / _SCORE_STEPS
    serialized: bytes = proto.SerializeToString()
    return serialized


def _write_words(
    words: Mapping[str, int],
    alphabet: Alphabet,
    normalizer: normalizers.Normalizer,
    file: Path,
) -> None:
    """Normalised words and counts, cut at characters outside the alphabet; the most frequent."""
    known = {MORPHEME_MARK, *alphabet.characters}
    counts: Counter[str] = Counter()
    for word, count in words.items():
        normal = normalizer.normalize_str(word)
        for part in "".join(c if c in known else " " for c in normal).split():
            counts[part] += count
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_WORDS]
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{word}\t{count}\n" for word, count in ranked)


def convert_sentencepiece(model: bytes, alphabet: Alphabet) -> Tokenizer:
    """The `tokenizers` equal of a model from `train_sentencepiece`, without frame."""
    proto = _messages.ModelProto.FromString(model)
    if proto.trainer_spec.model_type == _messages.TrainerSpec.UNIGRAM:
        tokenizer = Tokenizer(_unigram(proto))
    else:
        tokenizer = Tokenizer(_bpe(proto))
    tokenizer.normalizer, _ = build_normalizer(alphabet)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(_SPACE, prepend_scheme="always")
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace(_SPACE, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(content=" ", left=1),
        ]
    )
    return tokenizer


def _unigram(proto: Any) -> models.Unigram:
    # Sentencepiece never reads "[SEP]" or "<0x41>" in a text as that entry; a low score makes
    # `tokenizers` do the same.
    scored = [
        (piece.piece, piece.score if piece.type == _Piece.NORMAL else UNREACHABLE_SCORE)
        for piece in proto.pieces
    ]
    return models.Unigram(scored, unk_id=SPECIAL_TOKENS.index("[UNK]"), byte_fallback=True)


def _bpe(proto: Any) -> models.BPE:
    """Sentencepiece joins the neighbours whose union ranks first, whichever way it is made."""
    vocabulary = {piece.piece: index for index, piece in enumerate(proto.pieces)}
    normal = {piece.piece for piece in proto.pieces if piece.type == _Piece.NORMAL}
    merges: list[tuple[str, str]] = []
    ranked = sorted(
        (piece for piece in proto.pieces if piece.type == _Piece.NORMAL),
        key=lambda piece: -piece.score,
    )
    for piece in ranked:
        text = piece.piece
        for cut in range(1, len(text)):
            if text[:cut] in normal and text[cut:] in normal:
                merges.append((text[:cut], text[cut:]))
    return models.BPE(vocabulary, merges, unk_token="[UNK]", fuse_unk=True, byte_fallback=True)
