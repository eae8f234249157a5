"""The page "설정": labels, guideline, way of working, members, trail and end of a project."""

import streamlit as st

from malmoi.app.language import say
from malmoi.app.projects.settings_backup import draw_backup
from malmoi.app.projects.settings_erase import draw_erasing
from malmoi.app.projects.settings_labels import draw_labels
from malmoi.app.projects.settings_people import draw_audit, draw_people
from malmoi.app.projects.settings_programs import draw_programs
from malmoi.app.projects.settings_work import draw_guideline, draw_work
from malmoi.app.sections import choose_section
from malmoi.app.visit import Visit
from malmoi.messages import Phrase

SECTION = "section"
_SECTIONS = {
    "labels": (Phrase("Labels"), "label"),
    "guideline": (Phrase("Guideline"), "menu_book"),
    "work": (Phrase("Way of working"), "tune"),
    "people": (Phrase("People"), "group"),
    "programs": (Phrase("Programs"), "key"),
    "audit": (Phrase("Trail"), "history"),
    "backup": (Phrase("Backup"), "save"),
    "erase": (Phrase("Erase"), "delete_forever"),
}


def show(visit: Visit) -> None:
    open_project = visit.needs_project()
    if open_project is None:
        return
    open_project.draw_name()
    section = choose_section(SECTION, _SECTIONS)
    if not open_project.allows("admin"):
        st.info(
            say("Only admins change settings. Ask an admin of the project."),
            icon=":material/lock:",
        )
    if section == "labels":
        draw_labels(open_project)
    elif section == "guideline":
        draw_guideline(open_project)
    elif section == "work":
        draw_work(open_project)
    elif section == "people":
        draw_people(visit, open_project)
    elif section == "programs":
        draw_programs(open_project)
    elif section == "audit":
        draw_audit(open_project)
    elif section == "backup":
        draw_backup(visit, open_project)
    else:
        draw_erasing(open_project)
