"""Personal data in comments: where it stands, and a fixed word in its place.

The shapes follow the numbering plan of the telephone network (전기통신번호관리세칙: mobile 01X,
areas 02 to 064, internet 070, free 080, safe numbers 050X, nation-wide 15XX/16XX/18XX), the
resident registration number (YYMMDD-NXXXXXX), ISO/IEC 7812 cards (Luhn), plates (two or three
digits, one of some 40 syllables, four digits), and what banks print. A number that only a bank
would know is an account when a bank or a word of payment stands beside it. Precision and recall on
written lines: tests/malmoi/text/cleaning/personal_data.tsv.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Literal

Kind = Literal["email", "resident", "phone", "card", "account", "plate"]
# In this order: a later kind does not look at what an earlier one took.
KINDS: tuple[Kind, ...] = ("email", "resident", "phone", "card", "account", "plate")
MASKS: dict[Kind, str] = {
    "email": "[이메일]",
    "resident": "[주민번호]",
    "phone": "[전화]",
    "card": "[카드]",
    "account": "[계좌]",
    "plate": "[차번호]",
}
# What a text needs to hold any: six digits (a plate), an at sign, or a number's spelled beginning.
FEWEST_DIGITS = 6
AT_SIGNS = ("@", "＠", "골뱅이")
SPELLED_ZERO = "0공영oO"
SPELLED_ONE = "1일"
_at_sign = re.compile("|".join(AT_SIGNS)).search
_six_digits = re.compile(rf"(?:[0-9０-９][^0-9０-９]*+){{{FEWEST_DIGITS}}}").search
_spelled_start = re.compile(f"[{SPELLED_ZERO}][{SPELLED_ONE}][{SPELLED_ZERO}]").search

_masks = re.compile("|".join(map(re.escape, MASKS.values())))

# Stands for what was taken: matched by no rule, and no context reaches over it.
_TAKEN = "\x00"
_WIDE = (
    "０１２３４５６７８９＠．，：；／＋（）－‐‑‒–—―−ㅡ\u00a0\u2002\u2003\u2007\u2009\u202f\u3000"
)
_fold_width = re.compile(f"[{_WIDE}]").sub
_NARROW = dict(zip(_WIDE, "0123456789@.,:;/+()---------       ", strict=True))
_SPELLED_DIGITS = "공영일이삼사오육륙칠팔구"

# Between the digits of a number that someone typed. Line breaks, tabs and wide gaps part columns of
# a table; beside a hyphen or full stop they do not.
_GAP = r"(?:\s?[\-.~_/·)]{1,2}\s?|[\-.~_/·)]{3}| {1,2})?"
_GAP_IN_NUMBER = r"(?:\s?[\-.~_/·)]{1,2}\s?| )?"  # where the beginning says less
_LIST_GAP = r"[:;,]\s?"  # between groups of digits only, for it also parts numbers
_START = r"(?<![0-9])(?<![0-9][\-.,])"
_END = r"(?!-?[0-9])"
_JOINTS = ("-", ".", ",")  # of _START

_LOCAL = r"(?<![A-Za-z0-9_%+\-])(?<![A-Za-z0-9]\.)[A-Za-z0-9_][A-Za-z0-9._%+\-]{0,63}"
_DOMAIN = r"(?:[A-Za-z0-9\-]{1,63}\.){1,5}"
# Behind a gap, @seoul.cafe mentions somebody unless it ends as addresses do.
_ENDINGS = r"(?:com|net|org|edu|gov|info|biz|kr|jp|cn|us|uk|de|fr)(?![A-Za-z])"
_emails = re.compile(
    rf"{_LOCAL}(?:@{_DOMAIN}[A-Za-z]{{2,10}}| ?(?:@|골뱅이) ?{_DOMAIN}{_ENDINGS})"
    rf"|{_LOCAL}@[가-힣]{{1,20}}\.(?:한국|kr|com)"
).finditer

_BIRTHDAY = r"[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
_residents = re.compile(
    _START + rf"(?P<birthday>{_BIRTHDAY})"
    r"(?P<gap> ?[\-.~:,;_/]? ?)(?P<rest>[1-8](?:[0-9]{6}|[*xX]{6}))(?![0-9])"
).finditer
_RESIDENT_WORDS = "주민|등록번호|민증|등본|초본|신분증"
_resident_words = re.compile(_RESIDENT_WORDS).search
# Told in halves: 앞자리 900101 뒷자리 1234567.
_FRONT = rf"(?<![0-9\-])(?P<front>{_BIRTHDAY})(?![0-9])"
_BACK = r"(?<![0-9\-])(?P<back>[1-8][0-9]{6})(?![0-9])"
_halves = (
    re.compile(rf"{_FRONT}(?P<between>[^0-9\x00]{{1,20}}){_BACK}").finditer,
    re.compile(rf"{_BACK}(?P<between>[^0-9\x00]{{1,20}}){_FRONT}").finditer,
    re.compile(rf"{_FRONT}(?P<back>)(?P<between>)").finditer,
    re.compile(rf"{_BACK}(?P<front>)(?P<between>)").finditer,
)
_FRONT_WORDS, _BACK_WORDS = "앞", "뒷|뒤 ?(?:자리|번호)|뒤[는에]"
_front_words = re.compile(_FRONT_WORDS).search
_back_words = re.compile(_BACK_WORDS).search
_half_words = re.compile(f"{_RESIDENT_WORDS}|{_FRONT_WORDS}|{_BACK_WORDS}").search
_HALF_CONTEXT = 14
# Numbers of companies: the word, or a court's four digits and the kind of company (11 to 15, 21,
# 22) where a person would be over 105.
_company_words = re.compile(
    r"(?:법인|등기|사업자|회사|기업) ?(?:등록|등기)? ?번호(?:(?!주민|민증)[^0-9]){0,8}$"
).search
_company_numbers = re.compile(r"1[1-9](?:0[1-9]|1[0-2])(?:1[1-5]|2[12])").fullmatch

_AREA = r"(?:2|3[1-3]|4[1-4]|5[1-5]|6[1-4])"
# +82, 0082 and 82-, and the zero that is left out behind it or stands in brackets.
_KOREA = rf"(?:\+ ?|00[0-9]?[ \-]?)82{_GAP}(?:\(?0\)?)?{_GAP}"
_BARE_KOREA = r"82(?: ?[\-.)/_~]{1,2} ?\(?0?\)?| ?\(0\)| 0)[ \-]?"
_phones = re.compile(
    # mobile: 010 and eight digits, the older ones and seven or eight, grouped at will
    rf"{_START}\(?(?:(?:{_KOREA}|0 ?)1 ?0(?:{_GAP}[0-9]){{8}}"
    rf"|(?:{_KOREA}|0)1[16789](?:{_GAP}[0-9]){{7,8}}){_END}"
    rf"|{_START}{_BARE_KOREA}(?:1[016789]|{_AREA})[ .\-]?[0-9]{{3,4}}[ .\-]?[0-9]{{4}}{_END}"
    rf"|{_START}82 ?10[ .\-][0-9]{{4}}[ .\-][0-9]{{4}}{_END}"
    rf"|\(?{_START}(?:(?:\+ ?82{_LIST_GAP}|82: ?)0?1|01)[016789]\)?{_LIST_GAP}[0-9]{{3,4}}"
    rf"(?:{_LIST_GAP}|-)[0-9]{{4}}{_END}"
    r"|(?:(?<=^[0-9]\.)|(?<=\s[0-9]\.))01[016789]-[0-9]{3,4}-[0-9]{4}"  # of a list: 1.010-…
    rf"{_END}"
    # areas, internet, free and safe numbers
    rf"|\(?{_START}(?:{_KOREA}|0){_AREA}{_GAP_IN_NUMBER}[0-9]{{3,4}}"
    rf"{_GAP_IN_NUMBER}[0-9]{{4}}{_END}"
    rf"|{_START}(?:0[78]0|050-?[0-9]|0{_AREA})[:,][0-9]{{3,4}}[:,\-][0-9]{{4}}{_END}"
    rf"|{_START}(?:0[78]0|050-?[0-9]){_GAP_IN_NUMBER}[0-9]{{3,4}}{_GAP_IN_NUMBER}[0-9]{{4}}{_END}"
    # nation-wide; not years, amounts or counts
    rf"|{_START}1(?:522|533|544|566|577|588|599|600|644|66[0168]|670|688|800|811|833|855|877|899)"
    rf"[\- ]?[0-9]{{4}}{_END}(?! ?[년원명개만억건점위])"
).finditer
_spelled_phones = re.compile(
    rf"(?<![A-Za-z0-9{_SPELLED_DIGITS}])[{SPELLED_ZERO}][{SPELLED_ONE}][{SPELLED_ZERO}]"
    rf"(?:{_GAP}[0-9{_SPELLED_DIGITS}oO]){{8}}{_END}"
).finditer

_cards = re.compile(
    rf"{_START}(?:[2-9][0-9]{{3}}(?:[\-. :,/_]?[0-9]{{4}}){{3}}"
    rf"|3[47][0-9]{{2}}[\-. :,/_]?[0-9]{{6}}[\-. :,/_]?[0-9]{{5}}){_END}"
).finditer

_numbers = re.compile(
    rf"{_START}[0-9]{{2,16}}(?:(?:[\- ][0-9]{{1,8}}){{1,4}}|(?:[:._/][0-9]{{1,8}}){{2,4}}"
    rf"|(?:,[0-9]{{1,8}}){{2,4}})?(?![\-.]?[0-9])(?!,[0-9]{{3}}(?![0-9\-]))"
).finditer
# Names that are also everyday words count only right before the number.
_BANK_OR_WORD = (
    r"(?:국민|우리|하나|신한|기업|부산|대구|경남|광주|전북|제주|카카오|토스|케이|우체국|수협|신협|산업|"
    r"씨티|(?i:kb|ibk|sc|nh)(?:제일)?)"
)
_BANK = r"(?:은행|뱅크|카뱅|농협|새마을금고|신협|수협|우체국)"
_PAYMENT = r"(?:계좌|입금|송금|예금주|후원|이체)"
_before_account = re.compile(
    rf"(?:{_BANK_OR_WORD}[\s:]{{0,3}}|(?:{_BANK}|{_PAYMENT})[^0-9{_TAKEN}]{{0,12}})$"
).search
# Parcels, orders and the like have numbers of their own. The word nearest to the number decides.
_goods = re.compile(
    r"택배(?!비)|송장|운송|배송(?!비)|등기|소포|주문(?!금|액)|(?i:ems)|바코드|시리얼"
    r"|(?:예약|접수|조회|승인|인증|거래|고객|회원|상품|쿠폰|일련|문의|관리) ?번호"
).finditer
_goods_behind = re.compile(r" ?(?:우체국)? ?(?:택배(?!비)|송장|등기|소포|배송(?!비))").match
_money = re.compile(
    rf"{_BANK}|{_PAYMENT}|카드|주민|{_BANK_OR_WORD}(?:은행|뱅크)?[\s:]{{0,3}}$"
).finditer
_after_account = re.compile(rf" ?\(?(?:{_BANK_OR_WORD}|{_BANK})").match
_right_after_account = re.compile(r" ?\(?[가-힣a-zA-Z]{0,4}(?:은행|뱅크|농협|새마을금고)").match
_LONGEST_CONTEXT = 24  # of _before_account
# Shortest printed account: ten digits; longest: 16 (assumption, from the banks' own examples).
_ACCOUNT_DIGITS = range(10, 17)
_date = re.compile(r"(?:19|20)[0-9]{2}[\- ./](?:0?[1-9]|1[0-2])[\- ./]").match
_amount = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])|[0-9]+(?= ?(?:원|달러|명))").match
_address = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}").fullmatch

_REGION = (
    r"(?:서울|부산|대구|인천|광주|대전|울산|세종|경기|강원|충북|충남|전북|전남|경북|경남|제주) ?"
)
_USE = "가나다라마거너더러머버서어저고노도로모보소오조구누두루무부수우주바사아자배하허호"
_plates = re.compile(
    rf"(?<![0-9.,\-:/제])(?<!선고 )(?P<region>{_REGION})?[0-9]{{2,3}}"
    rf"(?P<use> ?[{_USE}] ?)[0-9]{{4}}(?![0-9])"
    r"(?! ?(?:[만억원명개년건점위호번장권세회배%]|달러|시간| 판결|결정|사건))"
).finditer
# Syllables that also count something (20조 3000, 25도 1000, 30주): apart from the digits they need
# a word of traffic close by.
_COUNTERS = frozenset("조주도구호부가보자배")
_court = re.compile("판례|판결|판시|선고|사건|대법|법원|헌재|헌법|상고|항소").search
_traffic = re.compile("차|택시|버스|운전|뺑소니|블랙박스|번호판").search
_NEAR = 20  # characters (assumption)


def _check_luhn(digits: list[int]) -> bool:
    digits = digits[::-1]
    doubled = sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + doubled) % 10 == 0


# Words that stand before a number without a gap; other Latin letters make it a code.
_words_before = re.compile(r"(?<![A-Za-z])(?i:tel|t|h\.?p|p|m|mobile|phone|fax|f|c)$").search
_is_latin = re.compile("[A-Za-z]").match


def _is_whole(shadow: str, match: re.Match[str]) -> bool:
    """Whether no Latin letter right before or behind makes it a part of a code."""
    start, end = match.span()
    if _is_latin(shadow, end):
        return False
    is_behind_letter = start > 0 and _is_latin(shadow, start - 1) is not None
    return not is_behind_letter or _words_before(shadow, max(0, start - 10), start) is not None


def _is_card(shadow: str, match: re.Match[str]) -> bool:
    digits = [int(c) for c in match[0] if c.isdigit()]
    return _check_luhn(digits) and _is_whole(shadow, match) and not _is_of_goods(shadow, match)


def _is_of_goods(shadow: str, match: re.Match[str]) -> bool:
    """Whether a parcel, an order or a thing has this number, by the words around."""
    before = shadow[max(0, match.start() - _LONGEST_CONTEXT) : match.start()]
    goods = max((word.end() for word in _goods(before)), default=-1)
    if goods < 0:
        return _goods_behind(shadow, match.end()) is not None
    return goods > max((word.end() for word in _money(before)), default=-1)


def _is_resident(shadow: str, match: re.Match[str]) -> bool:
    before = shadow[max(0, match.start() - 20) : match.start()]
    if _company_words(before) or not _is_whole(shadow, match):
        return False
    words = _resident_words(before) is not None
    if not words and _company_numbers(match["birthday"]) and match["rest"][0] in "12":
        return False
    if words or "-" in match["gap"] or not match["rest"].isdigit():
        return True
    # 13 digits in a row may be a bar code (880 is Korea's prefix in GS1): the check digit that
    # numbers given before October 2020 have decides.
    digits = [int(c) for c in match[0] if c.isdigit()]
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    check = (11 - sum(w * d for w, d in zip(weights, digits, strict=False)) % 11) % 10
    return digits[:3] != [8, 8, 0] and check == digits[12] and not _is_of_goods(shadow, match)


def _resident_halves(shadow: str) -> Iterator[tuple[int, int]]:
    """Spans of the two parts of a registration number that are told apart from each other."""
    if not _half_words(shadow):
        return
    for find in _halves:
        spans = [span for half in find(shadow) for span in _halves_of(shadow, half)]
        yield from spans
        shadow = _blank(shadow, sorted(spans))


def _halves_of(shadow: str, half: re.Match[str]) -> list[tuple[int, int]]:
    start = half.start()
    near = shadow[max(0, start - _HALF_CONTEXT) : start]
    far = shadow[max(0, start - 2 * _HALF_CONTEXT) : start]
    is_told = _resident_words(far) is not None
    spans = [half.span(name) for name in ("front", "back") if half[name]]
    if len(spans) == 2:
        later = _back_words if half.start("front") == start else _front_words
        return spans if is_told or later(half["between"]) else []
    named = _front_words if half["front"] else _back_words
    return spans if is_told and named(near) else []


def _is_account(shadow: str, match: re.Match[str]) -> bool:
    number, (start, end) = match[0], match.span()
    if sum(c.isdigit() for c in number) not in _ACCOUNT_DIGITS or _date(number):
        return False
    if not _is_whole(shadow, match):
        return False
    if _amount(shadow, start) or _address(number) or _is_of_goods(shadow, match):
        return False
    if _before_account(shadow[max(0, start - _LONGEST_CONTEXT) : start]):
        return True
    if number.count("-") >= 2:
        return _after_account(shadow, end) is not None
    return number.isdigit() and _right_after_account(shadow, end) is not None


def _is_plate(shadow: str, match: re.Match[str]) -> bool:
    use, (start, end) = match["use"], match.span()
    if not match["region"] and _court(shadow, max(0, start - _NEAR), end + _NEAR):
        return False
    if len(use) == 1 or match["region"] or use.strip() not in _COUNTERS:
        return True
    return _traffic(shadow, max(0, start - _NEAR), end + _NEAR) is not None


def _is_spelled(match: re.Match[str]) -> bool:
    # Digits as such are a binary number (0101010101 이진법) unless most of the rest is spelled.
    return not match[0][:3].isdigit() or sum(c in _SPELLED_DIGITS for c in match[0]) >= 4


# Digits with at most four other characters between them, and the reach of the shapes beyond: a
# region or "+" before, six stars and a unit behind.
_clusters = re.compile("[0-9](?:[^0-9]{0,4}[0-9])*").finditer
_REACH_BEFORE, _REACH_BEHIND = 8, 12


def _regions(shadow: str) -> list[tuple[int, int]]:
    """Where there are enough digits for a number, and what may belong to it around them."""
    clusters = [cluster.span() for cluster in _clusters(shadow)]
    return [
        (max(0, first - _REACH_BEFORE), min(end + _REACH_BEHIND, next_first))
        for (first, end), (next_first, _) in pairwise((*clusters, (len(shadow), 0)))
        if end - first >= FEWEST_DIGITS
    ]


def _numbers_in(
    shadow: str,
    regions: list[tuple[int, int]],
    pattern: Callable[[str, int, int], Iterator[re.Match[str]]],
    accepts: Callable[[str, re.Match[str]], bool],
) -> Iterator[tuple[int, int]]:
    """Spans of a shape that are accepted, looked for in these regions only."""
    last = 0
    for first, stop in regions:
        start = max(last, first)
        while match := next(pattern(shadow, start, stop), None):
            start = last = match.end()
            if not accepts(shadow, match):
                continue
            yield match.span()
            # The next of numbers joined by commas is no rest of this one: found now and not in a
            # pass of its own, of which a list of thousands would need thousands.
            if shadow[last : last + 1] in _JOINTS:
                shadow = _blank(shadow, [match.span()])


def _spans(shadow: str, regions: list[tuple[int, int]], kind: Kind) -> Iterator[tuple[int, int]]:
    match kind:
        case "email":
            if "@" in shadow or "골뱅이" in shadow:
                yield from (match.span() for match in _emails(shadow))
        case "resident":
            whole = list(_numbers_in(shadow, regions, _residents, _is_resident))
            halves = _resident_halves(_blank(shadow, whole)) if regions else ()
            yield from sorted([*whole, *halves])
        case "phone":
            phones = list(_numbers_in(shadow, regions, _phones, _is_whole))
            spelled = _spelled_phones(_blank(shadow, phones)) if _spelled_start(shadow) else ()
            yield from sorted(phones + [m.span() for m in spelled if _is_spelled(m)])
        case "card":
            yield from _numbers_in(shadow, regions, _cards, _is_card)
        case "account":
            yield from _numbers_in(shadow, regions, _numbers, _is_account)
        case "plate":
            yield from _numbers_in(shadow, regions, _plates, _is_plate)


def find_personal_data(text: str, kinds: tuple[Kind, ...] = KINDS) -> list[tuple[int, int, Kind]]:
    """Spans (start, end, kind) of personal data in code points, ordered, not overlapping.

    Digits may be full-width; those of a mobile number may also be spelled (공일공) or be the
    letter O. Masks already in the text are left alone.
    """
    shadow = _fold_width(lambda wide: _NARROW[wide[0]], text)
    if "[" in shadow:
        shadow = _blank(shadow, [mask.span() for mask in _masks.finditer(shadow)])
    regions = _regions(shadow)
    found: list[tuple[int, int, Kind]] = []
    for kind in KINDS:
        if kind in kinds:
            spans = list(_spans(shadow, regions, kind))
            shadow = _blank(shadow, spans)
            found += [(start, end, kind) for start, end in spans]
    return sorted(found)


def _blank(shadow: str, spans: list[tuple[int, int]]) -> str:
    """Take spans out of what later rules see; the length stays."""
    pieces: list[str] = []
    last = 0
    for start, end in spans:
        pieces += (shadow[last:start], _TAKEN * (end - start))
        last = end
    return "".join((*pieces, shadow[last:])) if pieces else shadow


def mask_personal_data(text: str, kinds: tuple[Kind, ...] = KINDS) -> str:
    """`text` with every piece of personal data replaced by the fixed word of its kind.

    A mask holds no digit, and masking a masked text changes nothing.
    """
    if not (_six_digits(text) or _at_sign(text) or _spelled_start(text)):
        return text
    found = find_personal_data(text, kinds)
    if not found:
        return text
    pieces: list[str] = []
    last = 0
    for start, end, kind in found:
        pieces += (text[last:start], MASKS[kind])
        last = end
    return "".join((*pieces, text[last:]))


def without_masks(text: str) -> str:
    """`text` less the words that `mask_personal_data` puts in."""
    return _masks.sub("", text) if "[" in text else text


def hide_masks(text: str) -> str:
    """`text` with a Latin word of the same length for each such word.

    For an analyser that knows no masks but takes a foreign word for a noun. Q composes with no
    combining mark, so the text stays in NFC.
    """
    return _masks.sub(lambda mask: "Q" * len(mask[0]), text) if "[" in text else text
