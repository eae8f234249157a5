"""What the app shows once a model is chosen: sidebar and pages, or how to make a model."""

from pathlib import Path

import streamlit as st

from app.explanation import explain
from app.model_choice import (
    available_models,
    display_name,
    distinct_names,
    load_model,
    mean_f1,
    preferred,
    stamp,
)
from app.views.file import show_file
from app.views.labels import show_labels
from app.views.single import show_single
from malmoi.devices import choose_device
from malmoi.errors import InputError
from malmoi.inference.classifier import Classifier
from malmoi.labels.store import LabelStore

DEVICES = {"cuda": "GPU", "cpu": "CPU"}
ANONYMOUS = "이름 없음"


def draw() -> None:
    """Draw the sidebar and the three pages."""
    try:
        store = LabelStore()
    except InputError as error:
        explain("라벨을 저장할 데이터베이스를 열 수 없습니다.", error)
        return
    models = available_models()
    if not models:
        _show_missing_model()
        if store.history_length():
            st.subheader("저장한 라벨", anchor=False)
            show_labels(store, None)
        return
    path, annotator = _sidebar(models)
    changed = stamp(path)
    try:
        classifier = load_model(str(path), changed)
    except InputError as error:
        explain(
            f"모델 ‘{display_name(path)}’을(를) 읽을 수 없습니다. 왼쪽에서 다른 모델을 고르거나, "
            "`python finetune/kfold.py`로 다시 만들어 주세요.",
            error,
        )
        return
    _describe(path, classifier)
    model_key = f"{path}@{changed}"
    single, file, labels = st.tabs(["한 건 분류", "파일 분류", "저장한 라벨"])
    with single:
        show_single(classifier, model_key, store, annotator)
    with file:
        show_file(classifier, model_key)
    with labels:
        show_labels(store, classifier.labels)


def _sidebar(models: list[Path]) -> tuple[Path, str]:
    names = distinct_names(models)
    with st.sidebar:
        path = st.selectbox(
            "모델", models, index=preferred(models), format_func=names.__getitem__, key="model"
        )
        # In the address, so that a refresh does not make the annotator someone else.
        name = st.text_input(
            "라벨 붙이는 사람",
            key="name",
            placeholder="이름 (라벨마다 적힙니다)",
            max_chars=60,
            bind="query-params",
        )
    return path, (name or "").strip() or ANONYMOUS


def _describe(path: Path, classifier: Classifier) -> None:
    with st.sidebar:
        st.markdown("**라벨**")
        st.text(", ".join(classifier.labels))
        if (score := mean_f1(path)) is not None:
            st.caption(f"교차 검증 F1 {score:.2f} (1에 가까울수록 잘 맞힙니다)")
        st.caption(f"이 컴퓨터의 {DEVICES[choose_device().type]}로 계산합니다.")


def _show_missing_model() -> None:
    st.warning(
        "아직 모델이 없습니다. 아래 명령으로 하나 만드세요.", icon=":material/model_training:"
    )
    st.markdown("가장 쉬운 길: 저장소에 들어 있던 모델을 되살립니다.")
    st.code("git checkout -- checkpoints", language="bash")
    st.markdown("직접 만들기: 댓글로 사전 학습을 하고, 리뷰 감정으로 미세 조정합니다.")
    st.code(
        "python pretrain/run.py --corpus corpora/comments\n"
        "python finetune/kfold.py --labels 긍정,부정,중립",
        language="bash",
    )
    st.markdown("다 되면 아래 단추를 누르세요.")
    st.button("다시 찾기", icon=":material/refresh:")
