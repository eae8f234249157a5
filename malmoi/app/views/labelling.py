"""The page "라벨링": one key gives a text its label, saves it and shows the next."""

import importlib

import streamlit as st

from malmoi.app.labelling.component import draw_card
from malmoi.app.language import say
from malmoi.app.navigation import link_to
from malmoi.app.projects.guideline import show_guideline
from malmoi.app.projects.running import import_key, works
from malmoi.app.side_by_side import side_by_side
from malmoi.app.visit import LOCAL_NAME, OpenProject, Visit
from malmoi.labels.annotator_view import has_texts

_SHOWN, _CURVE = "guideline", "curve"
_PIXELS = 520
_GUIDELINE = "labelling_guideline"
_SMALL = f"""
<style>
.st-key-{_GUIDELINE} :is(p, li, td, th) {{ font-size: 0.85rem; line-height: 1.5; }}
</style>
"""


def show(visit: Visit) -> None:
    """Draw the page."""
    opened = visit.needs_project()
    if opened is None:
        link_to("projects", say("작업 만들기", "Make a project"))
        return
    if works().of(import_key(opened.access.project_id)) is not None:
        # Reads tables, which takes long to import.
        imports = importlib.import_module("malmoi.app.projects.imports")
        imports.draw_import(opened, with_end=True, while_labelling=True)
    if opened.project.archived_at is not None:
        st.info(
            say(
                "보관한 작업입니다. 라벨은 그대로 있습니다. 더 붙이려면 ‘설정’에서 다시 여세요.",
                "This project is archived. Its labels are kept; open it again under Settings to "
                "go on.",
            ),
            icon=":material/inventory_2:",
        )
        link_to("settings", say("설정 열기", "Open the settings"))
    elif not has_texts(opened.access):
        st.info(
            say(
                "아직 글이 없습니다. ‘작업’에서 파일을 올리면 바로 라벨을 붙일 수 있습니다.",
                "There are no texts yet. Import a file under Projects to begin.",
            ),
            icon=":material/upload_file:",
        )
        link_to("projects", say("글 가져오기", "Import texts"))
    elif _is_nobody(opened):
        st.info(
            say(
                "글마다 여러 사람이 라벨을 붙이는 작업입니다. 왼쪽 ‘라벨 붙이는 사람’에 이름을 "
                "적으면 시작합니다.",
                "Several people label each text of this project. Type your name under Annotator "
                "on the left to begin.",
            ),
            icon=":material/badge:",
        )
    else:
        _draw(opened)


def _is_nobody(opened: OpenProject) -> bool:
    """Whether two visitors like this one would count as one of several annotators."""
    person = opened.access.person
    several = opened.project.settings.annotators_per_text > 1
    return several and person.is_local and person.name == LOCAL_NAME


def _draw(opened: OpenProject) -> None:
    """The card, and beside it (below it on a narrow page) the guideline."""
    guideline = opened.project.guideline.strip()
    shown = bool(guideline) and st.toggle(
        say("지침 보기", "Show the guideline"),
        key=_SHOWN,
        value=True,
        help=say("글 옆에 지침을 펼쳐 둡니다.", "Keeps the guideline beside the text."),
    )
    st.html(_SMALL)
    # The card keeps its place with and without a guideline: another place would be a new card.
    card, beside = side_by_side("labelling")
    with card:
        draw_card(opened)
    if shown:
        with beside, st.container(key=_GUIDELINE, border=True, height=_PIXELS):
            st.caption(
                say(
                    f"지침 {opened.project.guideline_version}판",
                    f"Guideline, version {opened.project.guideline_version}",
                )
            )
            show_guideline(guideline)
    if st.toggle(say("모델이 배우는 모습 보기", "Show what the model has learnt"), key=_CURVE):
        # Draws charts, which take long to import.
        importlib.import_module("malmoi.app.learning.curve").draw_curve(opened)
