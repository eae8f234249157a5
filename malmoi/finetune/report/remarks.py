"""What the scores of labels of unequal frequency do not say by themselves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from malmoi.finetune.data.folds import SplitTexts

# Of fewer texts an F1 moves by tenths with each of them (assumption).
_FEW_TEXTS = 20
# A label is rare beside one that is so many times as frequent (assumption).
_RARE = 5
# A label of which less than this is found is missed more often than not.
_MISSED = 0.5


@dataclass(frozen=True, kw_only=True)
class ScoreRemark:
    """A sentence for the terminal, and for the page of those who label."""

    english: str
    korean: str


def remarks(scores: Mapping[str, Any], *, weighted: bool) -> list[ScoreRemark]:
    """How good no model would be, labels with too few texts, rare labels that are missed.

    Args:
        scores: as `malmoi.finetune.evaluation.scores.score` gives them.
        weighted: whether rare labels counted more in training already.
    """
    labels: Mapping[str, Mapping[str, Any]] = scores["labels"]
    texts = {name: int(found["support"]) for name, found in labels.items()}
    if not sum(texts.values()):
        return []
    found = [_majority(texts), *_distances(scores), *_few(scores, texts)]
    return found if weighted else found + _missed(labels, texts)


def remarks_on_alike(split: SplitTexts) -> list[ScoreRemark]:
    """How many texts a model would know from others, and whether they stay together."""
    found = []
    if split.same_letters:
        found.append(
            ScoreRemark(
                english=f"{split.same_letters:,} texts have the letters and digits of another and "
                "differ in signs alone; they stay in one fold",
                korean=f"{split.same_letters:,}개는 부호나 ㅎㅎ 같은 것만 다르고 글자와 숫자가 "
                "같은 글이 또 있어서, 그런 글끼리 한 폴드에 모았습니다.",
            )
        )
    if split.near_duplicates:
        together = split.rule["near_duplicate_threshold"] is not None
        found.append(
            ScoreRemark(
                english=f"{split.near_duplicates:,} texts nearly equal another; "
                + (
                    "they stay in one fold"
                    if together
                    else "where one fold has learnt the other the score is too good: "
                    "--group-near-duplicates keeps them together"
                ),
                korean=f"{split.near_duplicates:,}개는 거의 같은 글이 또 있습니다. "
                + (
                    "그런 글끼리 한 폴드에 모았습니다."
                    if together
                    else "배운 글과 거의 같은 글로 평가되면 점수가 실제보다 높게 나옵니다."
                ),
            )
        )
    return found


def _majority(texts: Mapping[str, int]) -> ScoreRemark:
    name = max(texts, key=texts.__getitem__)
    share = texts[name] / sum(texts.values())
    macro = 2 * share / (1 + share) / sum(count > 0 for count in texts.values())
    return ScoreRemark(
        english=f"for comparison: whoever says {name} of every text has an accuracy of "
        f"{share:.4f} and a macro F1 of {macro:.4f}",
        korean=f"비교: 모든 텍스트에 {name} 라벨을 붙이면 정확도 {share:.1%}, 매크로 F1 "
        f"{macro:.3f}입니다.",
    )


def _distances(scores: Mapping[str, Any]) -> list[ScoreRemark]:
    found = scores.get("distances")
    if not found:
        return []
    mean, one = found["mean_distance"], found["off_by_one"]
    return [
        ScoreRemark(
            english=f"labels look ordered: predictions are off by {mean:.3f} on average, and "
            f"{one:.1%} of the mistakes by one; --task value learns them as numbers",
            korean=f"라벨이 순서대로인 것 같습니다. 예측은 평균 {mean:.2f}만큼 빗나갔고, 틀린 것 "
            f"가운데 {one:.1%}는 한 칸 차이입니다.",
        )
    ]


def _few(scores: Mapping[str, Any], texts: Mapping[str, int]) -> list[ScoreRemark]:
    few = [name for name, count in texts.items() if 0 < count < _FEW_TEXTS]
    others = [scores["labels"][name]["f1"] for name in texts if texts[name] >= _FEW_TEXTS]
    if not few or not others:
        return []
    shown = ", ".join(f"{name} {texts[name]}" for name in few)
    mean = sum(others) / len(others)
    return [
        ScoreRemark(
            english=f"labels of fewer than {_FEW_TEXTS} texts ({shown}) count as much in macro F1 "
            "as the others, though their F1 is mostly chance; the mean F1 of the others is "
            f"{mean:.4f}",
            korean=f"텍스트가 {_FEW_TEXTS}개가 안 되는 라벨({shown})의 F1은 거의 우연이지만, "
            f"매크로 F1에서는 다른 라벨과 똑같이 셉니다. 나머지 라벨의 평균 F1은 {mean:.3f}입니다.",
        )
    ]


def _missed(labels: Mapping[str, Mapping[str, Any]], texts: Mapping[str, int]) -> list[ScoreRemark]:
    most = max(texts.values())
    missed = [
        name
        for name, found in labels.items()
        if _FEW_TEXTS <= texts[name] <= most / _RARE and found["recall"] < _MISSED
    ]
    if not missed:
        return []
    shown = ", ".join(f"{name} {labels[name]['recall']:.0%}" for name in missed)
    return [
        ScoreRemark(
            english=f"of rare labels only a part is found ({shown}): --recipe imbalanced makes all "
            "labels count alike in training, which finds more of them, with a lower precision",
            korean=f"드문 라벨은 일부만 찾아냅니다({shown}). --recipe imbalanced로 학습하면 모든 "
            "라벨을 똑같이 중요하게 여겨 드문 라벨을 더 찾아내는 대신 정밀도는 낮아집니다.",
        )
    ]
