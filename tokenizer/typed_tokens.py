"""Special tokens that somebody typed are text: "[SEP]" in a review ends nothing."""

from tokenizers import Tokenizer, normalizers
from transformers import PreTrainedTokenizerBase

# A word in front, for some tokenizers treat the beginning of a text in another way.
_BEFORE = "가 "


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
        # Of [UNK] nothing can be said: what is left of it may be unknown.
        if token != tokenizer.unk_token
        and tokenizer.convert_tokens_to_ids(token)
        in backend.encode(_BEFORE + token, add_special_tokens=False).ids
    ]
    if reached:
        # Of models that look for whole entries (XLM-R's has a piece "<s>").
        before = [] if backend.normalizer is None else [backend.normalizer]
        apart = [normalizers.Replace(token, f"{token[0]} {token[1:]}") for token in reached]
        backend.normalizer = normalizers.Sequence([*before, *apart])
