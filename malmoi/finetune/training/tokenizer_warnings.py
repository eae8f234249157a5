"""Whether a tokenizer of another's fits the texts and the model: what shows in no score's name."""

from collections import Counter
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from malmoi.inference.tokenizing import MANY_UNKNOWN, some_of


def tokenizer_warnings(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[str]:
    """What would spoil a training without a word: one line for each, with an example.

    Args:
        tokenizer: as loaded beside the encoder.
        texts: those to learn from; of many, some spread evenly are looked at.
    """
    words = Counter(word for text in some_of(texts) for word in text.split())
    if not words:
        return []
    names = list(words)
    rows = _ids(tokenizer, names)
    warnings: list[str] = []
    unknown = [word for word, ids in zip(names, rows, strict=True) if tokenizer.unk_token_id in ids]
    share = sum(words[word] for word in unknown) / words.total()
    if unknown and share >= MANY_UNKNOWN:
        warnings.append(
            f"{share:.0%} of the words are {tokenizer.unk_token} to the tokenizer, such as "
            f"{_commonest(unknown, words)}: is it of this language?"
        )
    framed = tokenizer("가")["input_ids"]
    if tokenizer.cls_token_id is None or tokenizer.cls_token_id not in framed:
        shown = " ".join(map(str, tokenizer.convert_ids_to_tokens(framed)))
        warnings.append(
            f"the tokenizer puts no {tokenizer.cls_token or '[CLS]'} before a text, where most "
            f"encoders gather what a text says: 가 becomes {shown}"
        )
    cased = [word for word in names if word != word.lower()]
    alike = [
        word
        for word, ids, small in zip(
            cased, _ids(tokenizer, cased), _ids(tokenizer, [w.lower() for w in cased]), strict=True
        )
        if ids == small and tokenizer.unk_token_id not in ids
    ]
    if alike:
        share = sum(words[word] for word in alike) / words.total()
        warnings.append(
            f"the tokenizer lower-cases: {share:.1%} of the words lose their capitals, such as "
            f"{_commonest(alike, words)}"
        )
    return warnings


def _commonest(words: Sequence[str], counts: Counter[str]) -> str:
    return max(words, key=counts.__getitem__)[:30]


def _ids(tokenizer: PreTrainedTokenizerBase, words: list[str]) -> list[list[int]]:
    if not words:
        return []
    encoded = tokenizer(words, add_special_tokens=False, split_special_tokens=True)
    ids: list[list[int]] = encoded["input_ids"]
    return ids
