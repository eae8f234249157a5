"""Who suggests now, and the last score of what learns: in a few lines, without a chart."""

from __future__ import annotations

import streamlit as st

from malmoi.app.found_models import short_name
from malmoi.app.language import say
from malmoi.app.plain_text import escaped, two_decimals
from malmoi.app.visit import OpenProject
from malmoi.inference.labelling.labels_needed import FEWEST_OF_SAMPLE, LABELS_A_ROUND
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
                "The score will be here once {labels} labels were learnt from.",
                labels=LABELS_A_ROUND,
            )
        )
    else:
        _draw_numbers(last)
    tell_model(open_project, last)


def _draw_numbers(last: ScoreVersion) -> None:
    quality = last.quality
    of_sample = say(
        "On {texts:,} texts drawn at random (from {fewest} on).",
        texts=quality.sample_texts,
        fewest=FEWEST_OF_SAMPLE,
    )
    shown: list[tuple[str, str, str | None]] = [
        (say("Labels learnt"), f"{quality.labels:,}", None),
        (say("Cross-validated F1"), two_decimals(quality.cross_validated_f1), None),
        (say("Sample"), two_decimals(quality.sample_f1), of_sample),
    ]
    if quality.chosen_f1 is not None:
        shown.append((say("F1 of the chosen model"), two_decimals(quality.chosen_f1), None))
    for place, (name, value, more) in zip(st.columns(len(shown)), shown, strict=True):
        place.metric(name, value, help=more)


def tell_model(open_project: OpenProject, last: ScoreVersion | None) -> None:
    """Say in a line which model suggests and orders, where one was chosen for the project.

    Args:
        last: the last point of its learning curve.
    """
    chosen = open_project.project.settings.model
    if chosen is None:
        return
    name, held = escaped(short_name(chosen)), scoring_model(open_project.access)
    chosen_f1 = None if last is None else last.quality.chosen_f1
    if held is None:
        line = say("The chosen model {name} has not suggested anything yet.", name=name)
    elif held != chosen:
        line = say("What was learnt from labels suggests and orders now.")
        if chosen_f1 is not None:
            line = say(
                "What was learnt from labels suggests and orders now: the chosen model {name} is "
                "no better on the labelled texts.",
                name=name,
            )
    elif last is None or chosen_f1 is None:
        line = say(
            "The chosen model {name} suggests and orders now. It is compared with what is learnt "
            "from labels once there are enough texts to do so.",
            name=name,
        )
    else:
        line = say(
            "The chosen model {name} suggests and orders now: on the labelled texts it is better "
            "than what was learnt from labels.",
            name=name,
        )
    st.caption(f":material/smart_toy: {line}")
