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
# Names of HTML elements only, and attributes only with a value: <BOB>, <24> and <For Paul> are
# titles of films. (HTML Living Standard, section 4; form and table parts that editors paste.)
_tags = re.compile(
    r"</?(?:a|abbr|b|big|blockquote|body|br|button|center|code|dd|del|div|dl|dt|em|embed|figure|"
    r"font|footer|form|h[1-6]|head|header|hr|html|i|iframe|img|input|ins|label|li|link|meta|"
    r"nav|object|ol|option|p|param|pre|q|s|script|section|select|small|source|span|strike|strong|"
    r"style|sub|sup|table|tbody|td|textarea|tfoot|th|thead|title|tr|u|ul|video)"
    r"(?:\s[^>=]{0,40}=[^>]{0,500})?\s?/?>|<!--[^>]{0,500}-->",
    re.IGNORECASE,
).sub


def remove_html(text: str) -> str:
    """Tags and comments become spaces, entities the characters they stand for."""
    if "&" in text:
        text = _amps("&", text)
        text = _entities(lambda entity: html.unescape(entity[0]), text)
    if "<" in text:
        text = _tags(" ", text)
    return text


# Naver shows a filtered swear word as OOO (KcELECTRA README, "Preprocessing", 6), petitions a name
# as ○○. Latin letters and digits beside it make it a word or a sum (GOOOOAL, 1,OOO원).
_portal_masks = re.compile(
    r"(?<![A-Za-z0-9ＯO])(?<![0-9][.,])[OＯ]{3,}(?![A-Za-z0-9])|[○◯〇]{2,}"
).sub
PORTAL_MASK_SIGNS = ("OOO", "Ｏ", "○", "◯", "〇")


def remove_portal_masks(text: str) -> str:
    """What a portal put in the place of a swear word or a name becomes a space."""
    if any(sign in text for sign in PORTAL_MASK_SIGNS):
        text = _portal_masks(" ", text)
    return text
