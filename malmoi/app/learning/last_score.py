"""Who suggests now, and the last score of what learns: in a few lines, without a chart."""

from __future__ import annotations

import streamlit as st

from malmoi.app.found_models import short_name
from malmoi.app.language import say
from malmoi.app.learning.due import FEWEST_OF_SAMPLE, LABELS_A_ROUND
from malmoi.app.plain_text import escaped
from malmoi.app.visit import OpenProject
from malmoi.labels.scores import ScoreVersion, score_versions, scoring_model


def draw_last_score(open_project: OpenProject) -> None:
    """The section of a page that has other things to show.

    Raises:
        InputError: the database cannot be used.
    """
    versions = score_versions(open_project.access, newest=1)
    last = versions[-1] if versions else None
    if last is None:
        st.caption(
            say(
                f"라벨 {LABELS_A_ROUND}개로 처음 배우고 나면 점수가 여기에 나옵니다.",
                f"The score will be here once {LABELS_A_ROUND} labels were learnt from.",
            )
        )
    else:
        _draw_numbers(last)
    tell_model(open_project, last)


def _draw_numbers(last: ScoreVersion) -> None:
    quality = last.quality
    of_sample = say(
        f"무작위로 나온 글 {quality.sample_texts:,}건에서 잰 점수입니다 "
        f"({FEWEST_OF_SAMPLE}건부터).",
        f"On {quality.sample_texts:,} texts drawn at random (from {FEWEST_OF_SAMPLE} on).",
    )
    shown: list[tuple[str, str, str | None]] = [
        (say("배운 라벨", "Labels learnt"), f"{quality.labels:,}", None),
        (say("교차 검증 F1", "Cross-validated"), _number(quality.cross_validated_f1), None),
        (say("표본 F1", "Sample"), _number(quality.sample_f1), of_sample),
    ]
    if quality.chosen_f1 is not None:
        shown.append((say("고른 모델 F1", "Chosen model"), _number(quality.chosen_f1), None))
    for place, (name, value, more) in zip(st.columns(len(shown)), shown, strict=True):
        place.metric(name, value, help=more)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def tell_model(open_project: OpenProject, last: ScoreVersion | None) -> None:
    """Say in a line which model suggests and orders, where one was chosen for the project.

    Args:
        open_project: the open one.
        last: the last point of its learning curve.
    """
    chosen = open_project.project.settings.model
    if chosen is None:
        return
    name, held = escaped(short_name(chosen)), scoring_model(open_project.access)
    chosen_f1 = None if last is None else last.quality.chosen_f1
    if held is None:
        line = say(
            f"고른 모델 ‘{name}’의 제안을 아직 만들지 않았습니다.",
            f"The chosen model {name} has not suggested anything yet.",
        )
    elif held != chosen:
        line = say(
            f"지금은 라벨에서 배운 모델이 제안하고 차례를 정합니다. 고른 모델 ‘{name}’이(가) "
            "라벨이 붙은 글에서 더 낫지 않습니다."
            if chosen_f1 is not None
            else "지금은 라벨에서 배운 모델이 제안하고 차례를 정합니다.",
            f"What was learnt from labels suggests and orders now: the chosen model {name} is no "
            "better on the labelled texts."
            if chosen_f1 is not None
            else "What was learnt from labels suggests and orders now.",
        )
    elif last is None or chosen_f1 is None:
        line = say(
            f"지금은 고른 모델 ‘{name}’이(가) 제안하고 차례를 정합니다. 견줄 글이 모이면 라벨에서 "
            "배운 모델과 견줍니다.",
            f"The chosen model {name} suggests and orders now. It is compared with what is learnt "
            "from labels once there are enough texts to do so.",
        )
    else:
        line = say(
            f"지금은 고른 모델 ‘{name}’이(가) 제안하고 차례를 정합니다. 라벨이 붙은 글에서 라벨로 "
            "배운 모델보다 낫습니다.",
            f"The chosen model {name} suggests and orders now: on the labelled texts it is better "
            "than what was learnt from labels.",
        )
    st.caption(f":material/smart_toy: {line}")
