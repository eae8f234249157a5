"""What more labels are worth: told beside the pace, instead of the hours to the last text."""

import streamlit as st

from malmoi.app import learning
from malmoi.app.language import language, say
from malmoi.app.learning.forecast import comparable_points, forecast
from malmoi.inference.labelling.labels_needed import LABELS_A_ROUND
from malmoi.labels.access import ProjectAccess
from malmoi.labels.scores import score_versions, scores_version


def worth(access: ProjectAccess) -> str:
    """In a line, by the rounds of learning so far; "" where nothing learns.

    Raises:
        InputError: the database cannot be used.
    """
    if not learning.is_on():
        return ""
    version = scores_version(access)
    return _told(str(access.engine.url), access.project_id, version, language(), access)


@st.cache_data(max_entries=200, show_spinner=False)
def _told(url: str, project: int, version: int | None, spoken: str, _access: ProjectAccess) -> str:
    points = comparable_points(score_versions(_access))
    if not points:
        return say("the model learns from {labels} labels on", labels=LABELS_A_ROUND)
    labels, f1 = points[-1]
    parts = [say("score of the model {points:.0f}", points=100 * f1)]
    expected = forecast(points)
    if expected is None:
        if len(points) > 1:
            before, other = points[-2]
            parts.append(
                say(
                    "the last {labels} labels {points:+.1f}",
                    labels=labels - before,
                    points=100 * (f1 - other),
                )
            )
        return " · ".join(parts)
    parts.append(
        say(
            "the next {labels} about {points:+.1f}",
            labels=LABELS_A_ROUND,
            points=100 * expected.next_gain,
        )
    )
    if expected.enough == expected.labels[0]:
        parts.append(say("the rest can be left to the model now"))
    elif expected.enough is not None:
        more = expected.enough - expected.labels[0]
        parts.append(say("after {labels} more the rest can be left to the model", labels=more))
    return " · ".join(parts)
