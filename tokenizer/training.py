"""WordPiece training: cased, NFC, accents kept, saved as an `AutoTokenizer` directory.

Accents are never stripped, because stripping decomposes text to NFD, which takes Hangul syllables
apart into jamo that no vocabulary holds (google-research/bert#228, electra#52).
"""

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers.trainers import WordPieceTrainer
from transformers import PreTrainedTokenizerFast

from corpora.errors import InputError

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# Embedding tables whose height is a multiple of 128 use the matrix units fully.
VOCABULARY_MULTIPLE = 128
MAX_VOCABULARY = 1_000_000
MAX_TEXTS = 2_000_000
# In the base alphabet whatever the corpus holds: a character outside it turns its whole word
# into [UNK]. Lone jamo carry the laughter and tears of comments (ㅋㅋ, ㅠㅠ, ㅇㅈ).
_BASE_ALPHABET = [
    *"0123456789",
    *"abcdefghijklmnopqrstuvwxyz",
    *"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    *(chr(code) for code in range(0x3131, 0x3164)),
]
# WordPiece replaces a whole word by [UNK] if one character is unknown, so symbols and emoji
# (category So, with skin tones, joiners and variation selectors) stand as words of their own.
_SYMBOLS = Regex(r"[\p{So}\x{1F3FB}-\x{1F3FF}\x{200D}\x{FE0F}]")


def build_tokenizer() -> Tokenizer:
    """An untrained WordPiece `tokenizers.Tokenizer` with our normalizer and pre-tokenizer."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.BertNormalizer(
                clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False
            ),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.BertPreTokenizer(),
            pre_tokenizers.Split(_SYMBOLS, behavior="isolated"),
        ]
    )
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def train_tokenizer(
    texts: Iterable[str], *, vocab_size: int = 16_000, min_frequency: int = 2
) -> PreTrainedTokenizerFast:
    """Train a WordPiece tokenizer.

    Args:
        texts: cleaned texts; the first two million are used, and held in memory: more no longer
            change a vocabulary (tokenizers#316).
        vocab_size: entries wanted, rounded up to a multiple of 128. A small corpus yields fewer
            word pieces; the rest is filled with `[unusedN]`, which no text reaches.
        min_frequency: word pieces seen less often are not made.

    Returns:
        A stock `PreTrainedTokenizerFast` (WordPiece by `tokenizers`' merge-based trainer).

    Raises:
        InputError: `vocab_size` or `min_frequency` is out of bounds.
    """
    if not 1_024 <= vocab_size <= MAX_VOCABULARY:
        raise InputError(
            f"expected --vocab-size from 1024 (Korean uses more syllables than that) to "
            f"{MAX_VOCABULARY}, found {vocab_size}"
        )
    if min_frequency < 0:
        raise InputError(f"expected --min-frequency of 0 or more, found {min_frequency}")
    vocab_size = -(-vocab_size // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
    texts = list(islice(texts, MAX_TEXTS))
    tokenizer = build_tokenizer()
    trainer = WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=min_frequency,
        # The alphabet is handed over as special tokens, with and without ##, because the trainer
        # numbers the characters it finds itself in hash order: ties between merges then fall
        # differently, and two trainings on one corpus give two vocabularies.
        special_tokens=[*SPECIAL_TOKENS, *_alphabet(texts, vocab_size // 2, min_frequency)],
        limit_alphabet=0,
        show_progress=False,
    )
    tokenizer.train_from_iterator(iter_batches(texts, 1_000), trainer=trainer)
    return wrap_tokenizer(_finish_vocabulary(tokenizer))


def _alphabet(texts: Iterable[str], max_entries: int, min_frequency: int) -> list[str]:
    """Single-character word pieces, the base alphabet first, then by falling frequency."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(unicodedata.normalize("NFC", text))
    frequent = sorted(
        (char for char, count in counts.items() if count >= min_frequency and char.isprintable()),
        key=lambda char: (-counts[char], char),
    )
    entries: list[str] = []
    for char in dict.fromkeys([*_BASE_ALPHABET, *frequent]):
        if char.isspace():
            continue
        entries.append(char)
        if not _stands_alone(char):
            entries.append(f"##{char}")
    # A full table of characters would leave no room for words.
    return entries[:max_entries]


def _stands_alone(char: str) -> bool:
    """Hanja, punctuation and symbols are words of their own: they never continue one."""
    category = unicodedata.category(char)
    ascii_symbol = char.isascii() and not char.isalnum()
    hanja = "\u4e00" <= char <= "\u9fff"
    return ascii_symbol or hanja or category[0] == "P" or category == "So"


def wrap_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """Give a trained `Tokenizer` BERT's [CLS] A [SEP] B [SEP] frame and the transformers API."""
    cls_id, sep_id = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls_id), ("[SEP]", sep_id)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _finish_vocabulary(tokenizer: Tokenizer) -> Tokenizer:
    """Make the alphabet ordinary word pieces again; pad with `[unusedN]` to a multiple of 128."""
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [
        token for token in state["added_tokens"] if token["content"] in SPECIAL_TOKENS
    ]
    vocabulary: dict[str, int] = state["model"]["vocab"]
    unused = (f"[unused{number}]" for number in range(VOCABULARY_MULTIPLE))
    while len(vocabulary) % VOCABULARY_MULTIPLE:
        vocabulary[next(unused)] = len(vocabulary)
    return Tokenizer.from_str(json.dumps(state, ensure_ascii=False))


def tokenizer_hash(tokenizer: PreTrainedTokenizerFast) -> str:
    """Sixteen hex digits that change when the tokenizer would give other ids."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    # Left behind by the last call with padding or truncation; they do not change the ids.
    state.pop("padding", None)
    state.pop("truncation", None)
    blob = json.dumps(state, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(blob.encode()).hexdigest()[:16]


def load_tokenizer(directory: str | Path) -> PreTrainedTokenizerFast:
    """Load a tokenizer directory and check that it has what pre-training needs.

    Raises:
        InputError: no such directory, no `tokenizer.json`, or a special token is missing.
    """
    path = Path(directory)
    if not (path / "tokenizer.json").is_file():
        raise InputError(
            f"expected a tokenizer directory with tokenizer.json, found none at {path}; "
            "make one with `python tokenizer/train.py --corpus PATH --output DIR`"
        )
    try:
        tokenizer = PreTrainedTokenizerFast.from_pretrained(path)
        # Some published files store them; they would cut texts and pad them with [PAD].
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    except Exception as error:  # the Rust library raises plain Exception for damaged files
        raise InputError(
            f"cannot read the tokenizer at {path}: {error}; copy or train it again"
        ) from error
    vocabulary = tokenizer.get_vocab()
    missing = [token for token in SPECIAL_TOKENS if token not in vocabulary]
    if missing or tokenizer.mask_token_id is None:
        raise InputError(
            f"expected special tokens {', '.join(SPECIAL_TOKENS)} in {path}, "
            f"missing {', '.join(missing) or 'the role of [MASK]'}; train a tokenizer with "
            "`python tokenizer/train.py`"
        )
    return tokenizer


def iter_batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Group texts in lists of `size`, the last one shorter: `tokenizers` works on lists."""
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
