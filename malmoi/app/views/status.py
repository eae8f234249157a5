"""The page "현황": how far the project is, how far annotators agree, the model against people."""

import streamlit as st

from malmoi.app.filling import draw_filling
from malmoi.app.language import say
from malmoi.app.learning.last_score import draw_last_score
from malmoi.app.measuring.agreeing import draw_agreement
from malmoi.app.measuring.model import draw_model
from malmoi.app.measuring.work import draw_work
from malmoi.app.navigation import link_to
from malmoi.app.sections import choose_section
from malmoi.app.visit import Visit
from malmoi.labels.people import AccessError
from malmoi.messages import Phrase

_PARTS = {
    "work": (Phrase("Progress"), "monitoring"),
    "agreement": (Phrase("Agreement"), "group"),
    "model": (Phrase("Model against people"), "smart_toy"),
}


def show(visit: Visit) -> None:
    open_project = visit.needs_project()
    if open_project is None:
        return
    part = choose_section("status_part", _PARTS)
    draw = {"work": draw_work, "agreement": draw_agreement, "model": draw_model}[part]
    try:
        draw(open_project)
        if part == "work":
            # The curve is on a page of its own.
            with st.container(border=True):
                st.text(say("Model"))
                draw_last_score(open_project)
                link_to("models", say("Curve and forecast"), query={"section": "curve"})
            draw_filling(open_project)
    except AccessError:
        st.info(
            say("Numbers about what others said are for reviewers and admins."),
            icon=":material/lock:",
        )
