"""What hypothesis draws: texts as people write them, and files of them with dirt."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.journeys.files import DIRT, ENCODINGS, FORMS, DirtyFile

SENTENCES = {
    "긍정": (
        "배송이 빨라서 정말 좋았어요",
        "색이 예쁘고 천도 부드럽습니다",
        "다음에도 여기서 살게요 ㅎㅎ",
        "선물했더니 엄마가 아주 기뻐하셨어요",
        "가격에 비해 품질이 훌륭해요 👍",
        "포장이 꼼꼼해서 감동했습니다!!",
    ),
    "부정": (
        "한 번 빨았더니 줄어들었어요 ㅠㅠ",
        "사진이랑 색이 너무 달라요",
        "문의해도 답이 없어서 답답합니다",
        "바느질이 엉성하고 실밥이 보여요",
        "배송이 열흘이나 걸렸습니다...",
        "다시는 안 삽니다 정말로",
    ),
    "중립": (
        "그냥 가격만큼 합니다",
        "보통이에요 나쁘지도 좋지도 않네요",
        "아직 안 써 봐서 모르겠어요",
        "어제 받았고 내일 입어 볼 예정입니다",
        "크기는 설명에 있는 대로입니다",
        "무난해요 그럭저럭 쓸 만합니다",
    ),
}
_ENDS = (
    "",
    "",
    "!",
    "?",
    " ㅋㅋㅋㅋ",
    " 😀",
    " 👩‍👩‍👧",
    " ❤️",
    " ᄏᄏ",
    " #추천",
    " @가게",
    " 010-1234-5678",
    " 3개",
    " 100%",
    " =1+1",
    " A/S",
    " 뷁똠방",
    " 漢字",
    " ⅷ㎏",
    ",",
    ";",
    " |",
    " 1,000원",
)
_STARTS = (
    "",
    "",
    "",
    "",
    "[포토] ",
    "- ",
    "=",
    "+",
    "@",
    "ㅋ ",
    "★★★★☆ ",
    "2024-02-29 ",
    "  ",
    "1) ",
)


@st.composite
def rows(draw: Any, least: int = 1, most: int = 12) -> tuple[tuple[str, str], ...]:
    """Texts and labels; some come twice."""
    labels = list(SENTENCES)
    return tuple(
        (
            draw(st.sampled_from(_STARTS))
            + draw(st.sampled_from(SENTENCES[label]))
            + draw(st.sampled_from(_ENDS)),
            label,
        )
        for label in draw(st.lists(st.sampled_from(labels), min_size=least, max_size=most))
    )


@st.composite
def files(
    draw: Any,
    *,
    forms: Sequence[str] = FORMS,
    dirt: Sequence[str] = DIRT,
    least: int = 1,
    most: int = 12,
) -> DirtyFile:
    """A file with any mix of dirt."""
    return DirtyFile(
        rows=draw(rows(least, most)),
        form=draw(st.sampled_from(list(forms))),
        encoding=draw(st.sampled_from(ENCODINGS)),
        zipped=draw(st.booleans()),
        parts=draw(st.sampled_from((1, 1, 1, 2))),
        text_column=draw(st.sampled_from(("리뷰", "text", "내용", "댓글"))),
        dirt=tuple(sorted(draw(st.sets(st.sampled_from(list(dirt)), max_size=5)))),
        seed=draw(st.integers(0, 999)),
    )


def journeys(
    share: int, kept: Sequence[dict[str, Any]] = (), **drawn: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of whole journeys.

    Args:
        share: how many of a thousand journeys are of this kind, or exactly so many in `make test`;
            JOURNEYS asks for another thousand.
        kept: arguments with which it once failed, run each time.
        drawn: arguments of the test.
    """
    asked = int(os.environ.get("JOURNEYS", "1000"))
    number = max(1, share * asked // 1000)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        for one in kept:
            test = example(**one)(test)
        run = settings(
            max_examples=number,
            # A long run looks elsewhere than the one of every day.
            derandomize=asked == 1000,
            database=None,
            deadline=None,
            print_blob=True,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        return run(given(**drawn)(test))

    return decorate
