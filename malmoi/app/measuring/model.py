"""The model against people, on the page 현황."""

import pandas as pd
import streamlit as st

from malmoi.app.as_of import kept_result
from malmoi.app.charts import confusion
from malmoi.app.language import number_of, say
from malmoi.app.measuring.behind import SHOWN, draw_texts
from malmoi.app.visit import OpenProject
from malmoi.labels.model_comparison import (
    SAID,
    Confusions,
    Said,
    agreed_share,
    model_comparison,
    texts_behind,
)


def draw_model(opened: OpenProject) -> None:
    """Draw the part.

    Raises:
        AccessError: the visitor is no reviewer.
    """
    said = st.segmented_control(
        say("모델의 어떤 의견과 견줄까요", "Which sayings of the model"),
        SAID,
        format_func={
            "shown": say("라벨을 붙일 때 보인 제안", "As shown when labelled"),
            "scores": say("지금 모델의 점수", "The scores of now"),
        }.__getitem__,
        key="status_said",
        default="shown",
        required=True,
    )
    found = kept_result(
        opened,
        f"model-{said}",
        lambda: model_comparison(opened.access, said),
        needed="reviewer",
    )
    if not found.everywhere:
        st.info(
            say(
                "견줄 것이 아직 없습니다. 모델의 제안을 보면서 라벨을 붙이거나 모델이 글에 점수를 "
                "매긴 뒤에 볼 수 있습니다.",
                "There is nothing to compare yet: label with suggestions, or let a model score "
                "the texts.",
            ),
            icon=":material/smart_toy:",
        )
        return
    _say_what_it_means(said)
    random_part, all_part = st.columns(2)
    with random_part, st.container(border=True):
        _draw_part(opened, said, found.in_sample, in_sample=True)
    with all_part, st.container(border=True):
        _draw_part(opened, said, found.everywhere, in_sample=False)


def _say_what_it_means(said: Said) -> None:
    if said == "shown":
        st.caption(
            say(
                "제안을 보고 붙인 라벨은 제안 쪽으로 기울 수 있습니다. 검수에서 결정한 글은 그 "
                "결정과 견줍니다.",
                "Labels given with a suggestion in view may lean towards it. Where a reviewer has "
                "decided, the decision counts.",
            )
        )
    else:
        st.caption(
            say(
                "모델이 배운 글도 들어 있어 실제보다 좋게 보일 수 있습니다. 검수에서 결정한 글은 "
                "그 결정과 견줍니다.",
                "Texts that the model has learnt from are among these, so it may look better than "
                "it is. Where a reviewer has decided, the decision counts.",
            )
        )


def _draw_part(opened: OpenProject, said: Said, counts: Confusions, *, in_sample: bool) -> None:
    total = sum(counts.values())
    name = say("무작위 표본", "Random sample") if in_sample else say("모두", "All")
    share = agreed_share(counts)
    st.metric(
        say(f"{name} · 라벨 {total:,}", f"{name} · {number_of(total, 'label')}"),
        "–" if share is None else say(f"{share:.1%} 같음", f"{share:.1%} the same"),
        help=say(
            "무작위 표본은 어려운 글을 골라 붙인 라벨에 치우치지 않아 정직한 값입니다.",
            "The random sample does not lean towards texts that were chosen for being hard.",
        )
        if in_sample
        else None,
    )
    if not counts:
        st.caption(
            say(
                "무작위로 뽑힌 글에 라벨이 다 붙으면 보입니다.",
                "It is here once texts drawn at random have all their labels.",
            )
        )
        return
    _draw_chart(opened, counts)
    _draw_table(opened, said, counts, in_sample=in_sample)


def _draw_chart(opened: OpenProject, counts: Confusions) -> None:
    totals: dict[str, int] = {}
    for (label, _), number in counts.items():
        totals[label] = totals.get(label, 0) + number
    frame = pd.DataFrame(
        [
            (label, given, number, number / totals[label])
            for (label, given), number in counts.items()
        ],
        columns=["row", "column", "number", "share"],
    )
    model = say("모델이 말한 라벨", "Said by the model")
    people = say("사람이 붙인 라벨", "Given by people")
    st.altair_chart(
        confusion(frame, model, people, _order(opened, counts)),
        width="stretch",
        alt=say("모델과 사람의 라벨을 견준 표", "Labels of the model and of people"),
    )


def _draw_table(opened: OpenProject, said: Said, counts: Confusions, *, in_sample: bool) -> None:
    rows = sorted(counts.items(), key=lambda one: -one[1])
    model, people = say("모델", "Model"), say("사람", "People")
    key = f"status_model_{said}_{in_sample}"
    picked = st.dataframe(
        pd.DataFrame(
            {
                "row": [label for (label, _), _ in rows],
                "column": [given for (_, given), _ in rows],
                "number": [number for _, number in rows],
            }
        ),
        hide_index=True,
        height=min(38 + 35 * len(rows), 220),
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "row": st.column_config.TextColumn(model),
            "column": st.column_config.TextColumn(people),
            "number": st.column_config.NumberColumn(say("라벨", "Labels"), format="localized"),
        },
    )
    chosen = picked["selection"]["rows"]
    if chosen and chosen[0] < len(rows):
        pair, number = rows[chosen[0]]
        texts = texts_behind(opened.access, said, pair, in_sample=in_sample, limit=SHOWN)
        draw_texts(f"{model}: {pair[0]} · {people}: {pair[1]}", texts, number, f"{key}_texts")


def _order(opened: OpenProject, counts: Confusions) -> list[str]:
    """The labels in the order of the project, then sets of them."""
    names = [label.name for label in opened.project.labels]
    met = {name for pair in counts for name in pair}
    return [name for name in names if name in met] + sorted(met - set(names))
