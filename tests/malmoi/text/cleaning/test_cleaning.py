"""What cleaning makes of Korean text, and which texts it keeps."""

import re
import unicodedata

import pytest

from malmoi.errors import InputError
from malmoi.text.cleaning.cleaner import CleaningSettings, clean_batch, clean_text

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
HEART = "❤\ufe0f"
THUMB = "👍🏻"
KOREA = "🇰🇷"
ENGLAND = "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
MENDING_HEART = "❤\ufe0f\u200d🩹"


CASES = [
    # text, cleaned
    ("", ""),
    (" \t\r\n\u3000\u00a0 ", ""),
    ("오늘  일정\t있음\n내일", "오늘 일정 있음 내일"),
    ("줄\u2028바꿈\u2029끝", "줄 바꿈 끝"),
    ("벨\x07소리\x00끝\x7f\x9f", "벨 소리 끝"),
    # repeats
    ("ㅋㅋㅋㅋㅋㅋ", "ㅋㅋ"),
    ("ㅋㅋ", "ㅋㅋ"),
    ("ㅠㅠㅠ 슬퍼ㅜㅜㅜㅜ", "ㅠㅠ 슬퍼ㅜㅜ"),
    ("ㅋㅎㅋㅎㅋㅎ", "ㅋㅎㅋㅎㅋㅎ"),
    ("아아아아아 진짜!!!!!!", "아아 진짜!!"),
    ("그래서......", "그래서.."),
    ("goooood AAAA", "good AA"),
    ("10000000원 1112223333", "10000000원 1112223333"),
    ("１１１１", "１１１１"),
    # how many there are means something
    ("바다 이야기 III 편보다 II 편이", "바다 이야기 III 편보다 II 편이"),
    ("VIII세 xviii장 XXX등급 lll편 ⅠⅠⅠ", "VIII세 xviii장 XXX등급 lll편 ⅠⅠⅠ"),
    ("AAA급 sss급 BBB+ WWW aaa건전지", "AAA급 sss급 BBB+ WWW aaa건전지"),
    ("등급 A+++ 1+++ C++ XXXL xxxs", "등급 A+++ 1+++ C++ XXXL xxxs"),
    ("연기 ★★★☆ 음악 ★★★ ⭐⭐⭐⭐⭐", "연기 ★★★☆ 음악 ★★★ ⭐⭐⭐⭐⭐"),
    (f"★★★ {HEART}{HEART}{HEART}", f"★★★ {HEART}{HEART}"),
    ("●●●○○ ○○○●● ■■■□□ ♥♥♥♡♡", "●●●○○ ○○○●● ■■■□□ ♥♥♥♡♡"),
    ("007 1111 ２２２２", "007 1111 ２２２２"),
    ("二〇〇九年 정○○ 三○○○二", "二〇〇九年 정 三○○○二"),
    # shouts and ornaments
    ("YESSSS AAAAA IIIII XXXXI wooow zzz kkk", "YESS AA II XXI woow zz kk"),
    ("■■■■■■■■■■■ ++++ ~~~~ ^^^^ ㅠㅠㅠㅠ", "■■ ++ ~~ ^^ ㅠㅠ"),
    # lone jamo, halfwidth jamo, hanja
    ("ㄱㅅ ㅇㅈ ㄹㅇ", "ㄱㅅ ㅇㅈ ㄹㅇ"),
    ("ﾡﾢ", "ﾡﾢ"),
    ("大韓民國 만세, 李 대통령", "大韓民國 만세, 李 대통령"),
    ("\uf9e1 씨", "李 씨"),  # a compatibility hanja; NFC unifies it
    # normal form
    (unicodedata.normalize("NFD", "한글 정규화"), "한글 정규화"),
    ("\u1112\u200b\u1161\u11ab", "한"),
    # jamo that compose nothing: of a phone's keyboard, and of old Hangul
    ("웃겨요 ᄏᄏᄏᄏ ᅲᅲ", "웃겨요 ㅋㅋ ㅠㅠ"),
    ("각ᆨ ᄏ큐ᅲ", "각ㄱ ㅋ큐ㅠ"),
    ("ᄒᆞᆫ글 ᄀᆞᄅᆞ", "ᄒᆞᆫ글 ᄀᆞᄅᆞ"),
    ("cafe\u0301", "café"),
    # invisible characters
    ("제\u200b로\u200c폭\u2060\ufeff", "제로폭"),
    ("\u202e거꾸로\u202c \u2066격리\u2069", "거꾸로 격리"),
    ("채움\u3164문자\uffa0\u115f\u1160", "채움문자"),
    ("\u3164\u3164\u3164", ""),
    ("부드러운\u00ad하이픈", "부드러운하이픈"),
    ("가\ufffd나", "가나"),
    ("반쪽\ud83d 이모지", "반쪽 이모지"),
    ("葛\U000e0100飾", "葛飾"),
    # addresses
    ("여기 https://www.naver.com/a?b=1&c=2 보세요", "여기 보세요"),
    ("http://naver.com에서 봤다", "에서 봤다"),
    ("(www.naver.com) 참고", "( ) 참고"),
    ("주소는 WWW.Daum.net.", "주소는 ."),
    ("ftp://a.kr/파일", "파일"),
    ("www 와 wwww.a 는 주소 아님", "ww 와 ww.a 는 주소 아님"),
    ("비율 3://4", "비율 3:/" + "/4"),
    # HTML
    ("끝내준다<br><br/>정말 <b>최고</b>", "끝내준다 정말 최고"),
    ('<span style="color:red">빨강</span> 글씨', "빨강 글씨"),
    ("&lt;기생충&gt; &amp; &quot;괴물&quot; &#39;짱&#39; &hearts;", "<기생충> & \"괴물\" '짱' ♥"),
    ("두 번 감싼 &amp;amp;lt;br&amp;amp;gt; 태그", "두 번 감싼 태그"),
    ("<BOB>와 <For Paul> <24> 3<4 a<b>c", "<BOB>와 <For Paul> <24> 3<4 a c"),
    ("<style>.a{color:red}</style><script>var a=1;</script>여기부터", "여기부터"),
    ('가<SCRIPT src="a.js" async >if (a<b) "</b>"</Script >나', "가 나"),
    ("&lt;script&gt;var a;&lt;/script&gt;끝", "끝"),
    ("<script> 태그와 <style> 태그", "태그와 태그"),
    ("가<!-- <b>숨김</b> -->나 <!-- 끝이 없다", "가 나 <!-- 끝이 없다"),
    ("<!-- 가 <script>나</script>다", "<!-- 가 다"),
    ("AT&T; R&D &없음;", "AT&T; R&D &없음;"),
    # portal masks
    ("이런 OOO 같은 영화", "이런 같은 영화"),
    ("OOOO들이 정○○ 의원", "들이 정 의원"),
    ("GOOOOAL 1,OOO원 1OOO명 OO7", "GOOAL 1,OO원 1OO명 OO7"),
    ("○ 첫째 ○ 둘째", "○ 첫째 ○ 둘째"),
    # mojibake
    ("ì•ˆë…•í•˜ì„¸ìš”", "안녕하세요"),
    ("안녕하세요".encode().decode("latin-1"), "안녕하세요"),
    ("안녕하세요 반갑습니다".encode("euc-kr").decode("latin-1"), "안녕하세요 반갑습니다"),
    ("나쁜 ×× 공무원 café naïve 80°C·½", "나쁜 ×× 공무원 café naïve 80°C·½"),
    # personal data
    ("전화 010-1234-5678 로", "전화 [전화] 로"),
    ("메일 a.b@naver.com요", "메일 [이메일]요"),
    # Only with one space for the white space around it does it look like an address.
    ("연락은 abc  @\n naver.com 로 주세요", "연락은 [이메일] 로 주세요"),
    ("010\u200b-1234\t-5678", "[전화]"),
    ("010\u00a01234\u30005678", "[전화]"),
    # columns of digits are no telephone
    ("02\t312\t9876", "02 312 9876"),
    ("010\n1234\n5678", "010 1234 5678"),
    ("02   312   9876", "02 312 9876"),
    ("900101\n1234568", "900101 1234568"),
    ("<tr><td>02</td><td>312</td><td>9876</td></tr>", "02 312 9876"),
    ("02<br>312<br>9876", "02 312 9876"),
    ("010-<b>1234</b>-5678", "[전화]"),
    # addresses go first: theirs are no numbers of a person
    ("https://a.kr/010-1234-5678 참고", "참고"),
    ("010-1234-5678@naver.com", "[이메일]"),
    # emoji
    (FAMILY, FAMILY),
    (f"{FAMILY}{FAMILY}{FAMILY}{FAMILY}", f"{FAMILY}{FAMILY}"),
    (f"좋아{HEART}{HEART}{HEART}{HEART}", f"좋아{HEART}{HEART}"),
    (f"{THUMB}{THUMB}{THUMB}", f"{THUMB}{THUMB}"),
    (f"{KOREA}{KOREA}{KOREA}", f"{KOREA}{KOREA}"),
    (f"{ENGLAND}{ENGLAND}{ENGLAND}", f"{ENGLAND}{ENGLAND}"),
    (MENDING_HEART, MENDING_HEART),
    ("😂😂😂😂😂", "😂😂"),
    ("👍👍🏻👍🏿", "👍👍🏻👍🏿"),
    ("1\ufe0f\u20e31\ufe0f\u20e31\ufe0f\u20e3", "1\ufe0f\u20e31\ufe0f\u20e31\ufe0f\u20e3"),
    ("가\u200d나", "가나"),
    ("😂\u200d 끝", "😂 끝"),
    ("\u200d👩", "👩"),
    ("👩\u200d\u200d", "👩"),
    ("가\U000e0041\U000e0042나", "가나"),
]


def test_clean_text() -> None:
    for text, expected in CASES:
        assert clean_text(text) == expected


def test_max_repeats() -> None:
    for max_repeats, expected in (
        (0, "ㅋㅋㅋㅋㅋ 와!!! 333"),
        (1, "ㅋ 와! 333"),
        (2, "ㅋㅋ 와!! 333"),
        (4, "ㅋㅋㅋㅋ 와!!! 333"),
    ):
        settings = CleaningSettings(max_repeats=max_repeats)
        assert clean_text("ㅋㅋㅋㅋㅋ 와!!! 333", settings) == expected


def test_options() -> None:
    for options, expected in (
        ({}, "大韓 민국♥ <b&b> [이메일]"),
        ({"hanja": "space"}, "민국♥ <b&b> [이메일]"),
        ({"hanja": "drop-text"}, "大韓 민국♥ <b&b> [이메일]"),
        ({"alphabet": "kcbert"}, "민국 <b&b> [이메일]"),
        ({"remove_html": False}, "大韓 민국♥ <b&amp;b> [이메일]"),
        ({"remove_portal_masks": False}, "OO 大韓 민국♥ <b&b> [이메일]"),
        ({"personal_data": ()}, "大韓 민국♥ <b&b> a@b.kr"),
        ({"remove_urls": False}, "大韓 민국♥ <b&b> [이메일] http://x.kr"),
    ):
        text = "OOO 大韓 민국♥ <b&amp;b> a@b.kr http://x.kr"
        assert clean_text(text, CleaningSettings(**options)) == expected


@pytest.mark.parametrize(
    "unit",
    [
        "http://(",
        "<script>",
        "<!--",
        "</style><style>",
        "XI",
        "★★★",
        "AAA",
        "👩\u200d",
        "❤\ufe0f",
        "가\u200b",
        "ㅋㅎ",
        "www.",
        "<b",
        "&amp;",
        "O",
    ],
)
def test_long_texts_take_linear_time(unit: str) -> None:
    clean_text(unit * 100_000)


def test_reason_to_drop() -> None:
    for text, reason in (
        ("", "empty"),
        ("\u200b\u3164 ", "empty"),
        ("http://a.kr", "empty"),
        ("아홉글자입니다요요", "too-short"),
        ("ㅋ" * 50, "too-short"),
        ("가나다라마 " * 2_000, "too-long"),
        ("This is an English comment", "no-hangul"),
        ("010-1234-5678 call me tonight", "no-hangul"),
        ("1234567890 !!", "no-hangul"),
        ("빵점! 빵점! 빵점! 빵점! 빵점! 빵점! 빵점!", "repetitive"),
        ("ㅋㅎㅋㅎㅋㅎㅋㅎㅋㅎㅋㅎㅋㅎㅋㅎ", "repetitive"),
        ("정말 감동적인 영화였어요".encode().decode("cp949", "replace"), "mojibake"),
        ("정말 감동적인 영화였어요".encode().decode("cp949", "ignore"), "mojibake"),
        ("정말 감동적인 영화였어요".encode().decode("euc-kr", "replace"), "mojibake"),
        ("열 글자는 남는다네", None),
    ):
        batch = clean_batch([text], CleaningSettings())
        assert batch.texts == [clean_text(text)]
        assert batch.reasons == [reason]


def test_bounds_are_inclusive() -> None:
    settings = CleaningSettings(min_characters=3, max_characters=5)
    batch = clean_batch(["가나", "가나다", "가나다라마", "가나다라마바"], settings)
    assert batch.reasons == ["too-short", None, None, "too-long"]


def test_settings_are_checked() -> None:
    for wrong, message in (
        ({"min_characters": 0}, "min_characters must be at least 1, found 0"),
        ({"max_characters": 9}, "max_characters must be at least min_characters (10), found 9"),
        ({"max_repeats": -1}, "max_repeats must be at least 0, found -1"),
        ({"min_distinct": 1.5}, "min_distinct must be from 0 to 1, found 1.5"),
        (
            {"personal_data": ("phone", "name")},
            "personal_data must be of email, resident, phone, card, account, plate, found name",
        ),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            CleaningSettings(**wrong)
