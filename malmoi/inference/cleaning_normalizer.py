"""What `clean_text` does to ordinary texts, as rules of the `tokenizers` library.

A tokenizer that carries them cleans by itself, wherever it is loaded: in a stock pipeline, by
`tokenizers` alone, in a web page; and it knows for every token its place in the text as it was
written. A rule can only put a fixed text in the place of a pattern. So these are not carried: the
masks of personal data, the repair of mojibake, what stands in scripts and HTML comments, rare
entities, and the exact length of some runs (letters of grades, eleven rare signs and more).

Patterns are read alike by Oniguruma (Rust) and by JavaScript.
"""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, normalizers

# The entities that comments have, after those of texts that were escaped more than once.
_AMPERSANDS = "&(?:amp;)+"
_ENTITIES = {
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&#39;": "'",
    "&#039;": "'",
    "&apos;": "'",
    "&nbsp;": " ",
}
# As malmoi.text.cleaning.markup; those that comments have.
_TAG = (
    r"</?(?:[aA]|[bB]|[bB][rR]|[dD][iI][vV]|[eE][mM]|[fF][oO][nN][tT]|[hH][1-6]|[iI]|[iI][mM][gG]|"
    r"[lL][iI]|[oO][lL]|[pP]|[sS]|[sS][pP][aA][nN]|[sS][tT][rR][oO][nN][gG]|[tT][dD]|[tT][rR]|"
    r"[uU]|[uU][lL])(?:[ \t\r\n][^>=]{0,40}=[^>]{0,500})?[ \t\r\n]{0,3}/?>|<!--[^>]{0,500}-->"
)
_CONTROL = r"[\x{01}-\x{08}\x{0E}-\x{1B}\x{7F}-\x{84}\x{86}-\x{9F}]"
# As malmoi.text.characters, and what joins or dresses an emoji: no tokenizer of ours keeps it.
_INVISIBLE = (
    r"[\x{00}\x{AD}\x{34F}\x{61C}\x{115F}\x{1160}\x{17B4}\x{17B5}\x{180B}-\x{180F}\x{200B}-\x{200F}"
    r"\x{202A}-\x{202E}\x{2060}-\x{206F}\x{3164}\x{FE00}-\x{FE0F}\x{FEFF}\x{FFA0}"
    r"\x{FFF9}-\x{FFFD}\x{E0020}-\x{E007F}\x{E0100}-\x{E01EF}]"
)
_URL = (
    r"(?:(?:[hH][tT][tT][pP][sS]?|[fF][tT][pP])://|(?<![A-Za-z0-9.])[wW][wW][wW]\.(?=[A-Za-z0-9]))"
    r"[A-Za-z0-9_\-.~:/?#\[\]@!\x{24}&'()*+,;=%]*[A-Za-z0-9_/#=~&%\-]"
)
_PORTAL_MASK = (
    r"(?<![A-Za-z0-9\x{FF2F}])(?<![0-9][.,])[O\x{FF2F}]{3,}(?![A-Za-z0-9])"
    r"|(?<![○◯〇●一二三四五六七八九十])[○◯〇]{2,}(?![○◯〇●一二三四五六七八九十])"
)
# Runs that `tells_by_length` may leave: of these a few more stay than in a clean text.
_RATING = r"[★☆⭐🌟●○◎■□▪▫◆◇▲△♥♡*\x{24}]"
_GRADE = r"[ailxA-NP-Z+ⅠⅩⅭⅯⅰⅹⅽⅿ]"
_OTHER = r"[^0-9\p{Nd}\s★☆⭐🌟●○◎■□▪▫◆◇▲△♥♡*\x{24}ailxA-NP-Z+ⅠⅩⅭⅯⅰⅹⅽⅿ]"
_SKIN_TONE = r"[\x{1F3FB}-\x{1F3FF}]"
# Signs that people also put in rows of dozens; each needs a rule of its own.
_ROWS = "♥♡★☆*"
_DRESSED = r"([\x{2190}-\x{2BFF}\x{1F000}-\x{1FAFF}]\x{FE0F})(?=\1\1)"
_FOLDS = (
    rf"({_OTHER})(?=\1\1)",
    rf"({_GRADE})(?=\1\1\1)",
    rf"({_RATING})(?=\1{{10}})",
    rf"([\x{{2600}}-\x{{27BF}}\x{{1F300}}-\x{{1FAFF}}]{_SKIN_TONE})(?=\1\1)",
)


def cleaning_rules() -> list[normalizers.Normalizer]:
    """The rules in their order, to be put before those of a tokenizer."""
    rules: list[tuple[str | Regex, str]] = [(Regex(_AMPERSANDS), "&"), *_ENTITIES.items()]
    rules += [(Regex(_TAG), " "), (Regex(_CONTROL), " ")]
    rules += [(Regex(_DRESSED), ""), (Regex(_INVISIBLE), "")]
    after: list[tuple[str | Regex, str]] = [(Regex(_URL), " "), (Regex(_PORTAL_MASK), " ")]
    after += [(Regex(rf"[{sign}]{{11,}}"), sign * 2) for sign in _ROWS]
    after += [(Regex(pattern), "") for pattern in _FOLDS]
    after += [(Regex(r"\s+"), " ")]
    return [
        *(normalizers.Replace(pattern, content) for pattern, content in rules),
        normalizers.NFC(),
        *(normalizers.Replace(pattern, content) for pattern, content in after),
        normalizers.Strip(),
    ]


def with_cleaning(serialized: str) -> str:
    """A tokenizer.json that cleans.

    Args:
        serialized: the JSON text of one that expects clean texts.
    """
    tokenizer = Tokenizer.from_str(serialized)
    own = [] if tokenizer.normalizer is None else [tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([*cleaning_rules(), *own])
    return str(tokenizer.to_str())
