"""The page "한 건 분류": one text in, its label out, corrected and saved."""

import hashlib
import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt
import pandas as pd
import streamlit as st
from sqlalchemy.exc import SQLAlchemyError

from app.explanation import explain
from app.model_choice import choose_model
from app.visit import Visit
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier, Prediction
from malmoi.labels.store import LabelStore
from malmoi.labels.tasks import task_with_labels
from malmoi.text.cleaning.cleaner import clean_text

SHORT_TEXT = 5
_STATE = "single_result"
_CHOSEN, _OTHER = "#1f6f5c", "#b9c9c3"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Result:
    """The classification on the page; what was saved of it is in the store."""

    id: str
    text: str
    model: str
    prediction: Prediction
    milliseconds: float
    saves: int = 0
    saved_label: str | None = None
    saved_by: str | None = None


def show(visit: Visit) -> None:
    """Draw the page."""
    chosen_model = choose_model()
    if chosen_model is None:
        return
    classifier, model_key = chosen_model.classifier, chosen_model.key
    store, annotator = LabelStore(), visit.person.name
    with st.form("single_form", border=False):
        text = st.text_area(
            "분류할 글",
            key="single_text",
            height=140,
            placeholder="리뷰나 댓글 한 건을 붙여 넣으세요.",
        )
        asked = st.form_submit_button("분류하기", type="primary", help="Ctrl+Enter로도 됩니다.")
    if asked:
        st.session_state.pop(_STATE, None)
        if not (text or "").strip():
            st.warning("글이 비어 있습니다. 분류할 글을 넣어 주세요.", icon=":material/edit:")
        elif not clean_text(text):
            st.warning(
                "주소나 태그를 빼면 남는 글이 없습니다. 분류할 글을 넣어 주세요.",
                icon=":material/edit:",
            )
        else:
            st.session_state[_STATE] = _classify(classifier, model_key, text)
    result: _Result | None = st.session_state.get(_STATE)
    if result is None or result.model != model_key:
        return
    _show_prediction(result)
    _show_correction(classifier, result, store, annotator)


def _classify(classifier: Classifier, model_key: str, text: str) -> _Result:
    started = time.perf_counter()
    (prediction,) = classifier.predict([text])
    milliseconds = (time.perf_counter() - started) * 1000
    return _Result(uuid.uuid4().hex, text, model_key, prediction, milliseconds)


def _show_prediction(result: _Result) -> None:
    if len(clean_text(result.text)) <= SHORT_TEXT:
        st.warning("글이 아주 짧습니다. 짧은 글의 예측은 덜 믿을 만합니다.", icon=":material/info:")
    if result.prediction.cut:
        st.info(
            f"글이 {len(result.text.strip()):,}자로 깁니다. 모델은 앞부분만 읽고 예측했습니다. "
            "저장할 때는 글 전체가 저장됩니다.",
            icon=":material/content_cut:",
        )
    prediction = result.prediction
    with st.container(border=True):
        # Metrics show their value as plain text, whatever characters a label has.
        label, confidence, took = st.columns([2, 1, 1])
        label.metric("예측", prediction.label)
        confidence.metric("확신도", f"{prediction.confidence:.1%}")
        took.metric("걸린 시간", f"{result.milliseconds:,.0f} ms")
        st.altair_chart(_bars(prediction), width="stretch", alt="라벨별 확률 막대그래프")


def _bars(prediction: Prediction) -> alt.LayerChart | alt.FacetChart:
    frame = pd.DataFrame(
        {
            "라벨": list(prediction.probabilities),
            "확률": list(prediction.probabilities.values()),
            "색": [_CHOSEN if x == prediction.label else _OTHER for x in prediction.probabilities],
        }
    )
    # A column name in an encoding is parsed ("." and ":" mean something), a label is not.
    base = alt.Chart(frame, height=alt.Step(30)).encode(
        y=alt.Y("라벨:N", sort=None, title=None, axis=alt.Axis(labelLimit=220, labelFontSize=14)),
        x=alt.X(
            "확률:Q",
            title=None,
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format=".0%", tickCount=5),
        ),
        tooltip=[alt.Tooltip("라벨:N"), alt.Tooltip("확률:Q", format=".1%")],
    )
    bars = base.mark_bar(cornerRadiusEnd=3, height=18).encode(color=alt.Color("색:N", scale=None))
    numbers = base.mark_text(align="left", dx=5, fontSize=13).encode(
        text=alt.Text("확률:Q", format=".1%")
    )
    return alt.layer(bars, numbers)


def _show_correction(
    classifier: Classifier, result: _Result, store: LabelStore, annotator: str
) -> None:
    st.subheader("라벨 고치고 저장하기", anchor=False)
    _show_guideline(classifier.labels)
    # The key holds the id: every new result starts again from its own prediction.
    chosen = st.segmented_control(
        "맞는 라벨",
        classifier.labels,
        default=result.prediction.label,
        required=True,
        key=f"label_{result.id}",
        wrap=True,
    )
    clicked = st.button("저장", type="primary", icon=":material/save:", key=f"save_{result.id}")
    if clicked and chosen is not None:
        saved = _save(classifier, result, chosen, store, annotator)
        if saved is not None:
            result = saved
    if result.saved_label is not None:
        total = sum(store.counts(classifier.labels).values())
        st.success(
            f"저장했습니다: {result.saved_label} · 지금까지 글 {total:,}건에 라벨이 있습니다.",
            icon=":material/check:",
        )
        return
    known = store.label_of(result.text, classifier.labels)
    if known is not None:
        st.caption(f"이 글에는 이미 ‘{known}’ 라벨이 있습니다. 다시 저장하면 새 라벨이 쓰입니다.")


def _show_guideline(labels: Sequence[str]) -> None:
    try:
        task = task_with_labels(labels)
    except InputError as error:
        explain("라벨 기준을 읽을 수 없습니다. 작업의 task.toml을 고쳐 주세요.", error)
        return
    if task is not None and task.guideline is not None:
        with st.expander("라벨 기준 보기", icon=":material/menu_book:"):
            st.markdown(task.guideline)


def _save(
    classifier: Classifier, result: _Result, label: str, store: LabelStore, annotator: str
) -> _Result | None:
    """Save, or tell why not. Clicking again without a change saves nothing more."""
    # A double click can rerun the page after the row was written and before session_state knew:
    # the same decision must then carry the same id, and a changed mind another one.
    decision = f"{result.id}:{result.saves}:{label}:{annotator}"
    try:
        unchanged = (result.saved_label, result.saved_by) == (label, annotator)
        # Someone else may have decided otherwise meanwhile.
        if unchanged and store.label_of(result.text, classifier.labels) == label:
            return result
        store.save(
            text=result.text,
            label=label,
            labels=classifier.labels,
            annotator=annotator,
            request_id=hashlib.sha256(decision.encode()).hexdigest(),
            predicted_label=result.prediction.label,
            confidence=result.prediction.confidence,
            model=classifier.name,
        )
    except (SQLAlchemyError, InputError):
        logger.exception("saving a label failed")
        st.error("라벨을 저장하지 못했습니다. 잠시 뒤에 저장을 다시 눌러 주세요.")
        return None
    saved = replace(result, saves=result.saves + 1, saved_label=label, saved_by=annotator)
    st.session_state[_STATE] = saved
    return saved
