"""What the labels mean, short enough to read while labelling."""

from collections.abc import Sequence

SENTIMENT_LABELS = frozenset({"긍정", "부정", "중립"})

SENTIMENT_GUIDELINE = """
글쓴이가 **리뷰의 주된 대상**(주문한 상품, 본 영화, 그 가게)을 어떻게 평가하는지 봅니다.

| 라벨 | 붙이는 때 |
| --- | --- |
| **긍정** | 만족하거나 권할 때. 작은 흠이 섞여도, 투정처럼 말해도 속뜻이 칭찬이면 긍정 |
| **부정** | 불만이거나 말릴 때. 비꼼은 속뜻을 따르고, 결함을 전하는 것이 요점이면 부정 |
| **중립** | 장단점이 비슷할 때, 무난할 때, 평가 없는 사실·질문·안내, 아직 써 보기 전 |

겹칠 때는 **마지막 결론 > 총평 > 개별 항목** 순서입니다. 별점이 보여도 글만 보고 붙이고, 비꼼인지
알 수 없으면 글자 그대로 읽습니다.
"""


def guideline_for(labels: Sequence[str]) -> str | None:
    """The guideline (Markdown) for these labels, or None where the project has none."""
    return SENTIMENT_GUIDELINE if frozenset(labels) == SENTIMENT_LABELS else None
