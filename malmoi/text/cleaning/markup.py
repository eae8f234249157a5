"""What a web page leaves in a text: addresses, tags, entities, and the masks of portals."""

import html
import re

# An address ends where Hangul begins (a particle follows it without a space) and does not take the
# full stop or bracket after it.
_URL_CHARACTER = r"[\w\-.~:/?#\[\]@!$&'()*+,;=%]"
_drop_urls = re.compile(
    rf"(?:(?:https?|ftp)://|(?<![a-z0-9.])www\.(?=[a-z0-9])){_URL_CHARACTER}*[\w/#=~&%\-]",
    re.ASCII | re.IGNORECASE,
).sub
URL_SIGNS = ("://", "ww.", "WW.")


def remove_urls(text: str) -> str:
    """Addresses become spaces."""
    if any(sign in text for sign in URL_SIGNS):
        text = _drop_urls(" ", text)
    return text


# &amp;lt; and deeper come from pages that were escaped more than once.
_amps = re.compile(r"&(?:(?:amp|#0{0,5}38|#[xX]0{0,5}26);)+").sub
_entities = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});").sub
# What stands between these is no text. All are found in one pass: looking for the end of each
# beginning would take the square of the time.
_hidden_parts = re.compile(
    r"<!--|-->|<(?P<end>/?)(?P<name>script|style)(?:\s[^<>]{0,500})?/?>", re.IGNORECASE
).finditer
_HIDDEN_SIGNS = ("<!--", "script", "style")
# Names of HTML elements only, and attributes only with a value: <BOB>, <24> and <For Paul> are
# titles of films. (HTML Living Standard, section 4; form and table parts that editors paste.)
_tags = re.compile(
    r"</?(?P<name>a|abbr|b|big|blockquote|body|br|button|center|code|dd|del|div|dl|dt|em|embed|"
    r"figure|font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|meta|"
    r"nav|object|ol|option|p|param|pre|q|s|script|section|select|small|source|span|strike|strong|"
    r"style|sub|sup|table|tbody|td|textarea|tfoot|th|thead|title|tr|u|ul|video)"
    r"(?:\s[^>=]{0,40}=[^>]{0,500})?\s{0,3}/?>|<!--[^>]{0,500}-->",
    re.IGNORECASE,
).sub
# Those that do not end a line: a number goes on behind them.
_is_inline = re.compile(
    "a|abbr|b|big|code|del|em|font|i|ins|label|q|s|small|span|strike|strong|sub|sup|u",
    re.IGNORECASE,
).fullmatch


def _space_of(tag: re.Match[str]) -> str:
    return " " if tag["name"] is None or _is_inline(tag["name"]) else "\n"


def remove_html(text: str) -> str:
    """Tags become white space, entities the characters they stand for.

    Scripts, styles and comments go with all that is in them, if they have an end.
    """
    if "&" in text:
        text = _amps("&", text)
        text = _entities(lambda entity: html.unescape(entity[0]), text)
    if "<" in text:
        lower = text.lower()
        if any(sign in lower for sign in _HIDDEN_SIGNS):
            text = _without_hidden(text)
        text = _tags(_space_of, text)
    return text


def _without_hidden(text: str) -> str:
    pieces: list[str] = []
    last = 0
    ends: dict[str, int] = {}  # of each kind the last one: what begins behind it has none
    for part in _hidden_parts(text):
        if part[0] == "-->" or part["end"]:
            ends[(part["name"] or "").lower()] = part.start()
    begun: re.Match[str] | None = None
    for part in _hidden_parts(text):
        name = (part["name"] or "").lower()
        is_end = part[0] == "-->" or part["end"]
        if begun is None and not is_end and part.start() < ends.get(name, 0):
            begun = part
        elif begun is not None and is_end and name == (begun["name"] or "").lower():
            pieces += (text[last : begun.start()], "\n" if name else " ")
            last = part.end()
            begun = None
    return "".join((*pieces, text[last:])) if pieces else text


# Naver shows a filtered swear word as OOO (KcELECTRA README, "Preprocessing", 6), petitions a name
# as ○○. Latin letters and digits beside it make it a word or a sum (GOOOOAL, 1,OOO원), black
# circles a rating (●●○○○), hanja numerals a number (二〇〇九年).
_CIRCLES = "○◯〇"
_NO_NAME = f"{_CIRCLES}●一二三四五六七八九十"
_portal_masks = re.compile(
    rf"(?<![A-Za-z0-9ＯO])(?<![0-9][.,])[OＯ]{{3,}}(?![A-Za-z0-9])"
    rf"|(?<![{_NO_NAME}])[{_CIRCLES}]{{2,}}(?![{_NO_NAME}])"
).sub
_portal_mask_sign = re.compile("[Ｏ○◯〇]|OOO").search


def remove_portal_masks(text: str) -> str:
    """What a portal put in the place of a swear word or a name becomes a space."""
    if _portal_mask_sign(text):
        text = _portal_masks(" ", text)
    return text
