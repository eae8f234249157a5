"""The page "저장한 라벨": what has been saved, and the way to fine-tuning."""

import shlex
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from app.batch import PERCENT, as_percent
from app.downloads import offer_table
from app.visit import Visit
from malmoi.labels.store import LabelStore

_SHOWN = 200
# finetune/kfold.py wants a text of each label in each of its folds.
_FOLDS = 5


def show(_visit: Visit) -> None:
    """Draw the page."""
    store = LabelStore()
    labels: Sequence[str] | None = None
    counts = store.counts(labels)
    if others := 0 if labels is None else store.count_of_others(labels):
        st.caption(
            f"다른 라벨을 쓰는 모델로 저장한 글이 {others:,}건 더 있습니다. 왼쪽에서 그 모델을 "
            "고르면 보입니다."
        )
    if not counts:
        st.info("아직 저장한 라벨이 없습니다. ‘한 건 분류’에서 글을 분류하고 저장해 보세요.")
        return
    total = sum(counts.values())
    places = st.columns(max(4, min(len(counts) + 1, 6)))
    places[0].metric("라벨이 있는 글", f"{total:,}")
    for place, (label, count) in zip(places[1:], counts.items(), strict=False):
        place.metric(label, f"{count:,}")
    if len(counts) >= len(places):
        st.dataframe(
            pd.DataFrame({"라벨": list(counts), "글": list(counts.values())}), hide_index=True
        )

    _show_recent(store)
    offer_table(lambda: store.export(labels), "labels")
    st.caption("글마다 마지막 라벨 하나씩 들어 있습니다.")
    _offer_training(counts)


def _show_recent(store: LabelStore) -> None:
    history = store.history_length()
    st.caption(f"최근 {min(_SHOWN, history):,}건 (고친 기록까지 모두 {history:,}건)")
    recent = store.recent(_SHOWN)
    table = pd.DataFrame(
        {
            "저장한 때": [row.created_at for row in recent],
            "라벨": [row.label for row in recent],
            "예측": [row.predicted_label for row in recent],
            "확신도": [row.confidence for row in recent],
            "글": [row.text for row in recent],
            "붙인 사람": [row.annotator for row in recent],
            "모델": [row.model for row in recent],
        }
    )
    st.dataframe(
        as_percent(table, ["확신도"]),
        hide_index=True,
        key="saved_labels",
        column_config={
            "저장한 때": st.column_config.DatetimeColumn(
                format="MM-DD HH:mm", timezone=st.context.timezone
            ),
            "글": st.column_config.TextColumn(width="medium"),
            "확신도": st.column_config.NumberColumn(format=PERCENT),
        },
    )


def _offer_training(counts: Mapping[str, int]) -> None:
    """Say how to train on the labels, or how many more it takes."""
    if len(counts) < 2:
        st.caption("라벨이 두 가지 이상 모이면 이 파일로 모델을 다시 학습할 수 있습니다.")
        return
    few = {label: count for label, count in counts.items() if count < _FOLDS}
    if few:
        missing = ", ".join(f"‘{label}’ {_FOLDS - count}건" for label, count in few.items())
        st.caption(
            f"라벨마다 글이 {_FOLDS}건 이상이어야 모델을 다시 학습할 수 있습니다. 더 필요한 글: "
            f"{missing}"
        )
        return
    st.markdown("내려받은 파일로 모델을 다시 학습할 수 있습니다.")
    st.code(retraining_command(sorted(counts)), language="bash")


def retraining_command(labels: Sequence[str]) -> str:
    """What a shell runs to train on the downloaded file, which has these labels."""
    command = "python finetune/kfold.py --data labels.xlsx"
    # The flag cannot name a label with a comma; without it all labels of the file are learnt.
    if any("," in label for label in labels):
        return command
    return f"{command} --labels {shlex.quote(','.join(labels))}"
