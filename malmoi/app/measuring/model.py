"""The model against people, on the page 현황."""

import pandas as pd
import streamlit as st

from malmoi.app.cached_results import cached_result
from malmoi.app.charts import confusion
from malmoi.app.language import say
from malmoi.app.reviewing.vote_table import SHOWN, draw_votes
from malmoi.app.row_choice import choose_row
from malmoi.app.visit import OpenProject
from malmoi.labels.model_comparison import (
    SAID,
    Confusions,
    Said,
    agreed_share,
    model_comparison,
    texts_behind,
)


def draw_model(open_project: OpenProject) -> None:
    """Draw the part.

    Raises:
        AccessError: the visitor is no reviewer.
    """
    said = st.segmented_control(
        say("Which sayings of the model"),
        SAID,
        format_func={
            "shown": say("As shown when labelled"),
            "scores": say("The scores of now"),
        }.__getitem__,
        key="status_said",
        default="shown",
        required=True,
    )
    found = cached_result(
        open_project,
        f"model-{said}",
        lambda: model_comparison(open_project.access, said),
        needed="reviewer",
    )
    if not found.everywhere:
        st.info(
            say(
                "There is nothing to compare yet: label with suggestions, or let a model score "
                "the texts."
            ),
            icon=":material/smart_toy:",
        )
        return
    _say_what_it_means(said)
    random_part, all_part = st.columns(2)
    with random_part, st.container(border=True):
        _draw_part(open_project, said, found.in_sample, in_sample=True)
    with all_part, st.container(border=True):
        _draw_part(open_project, said, found.everywhere, in_sample=False)


def _say_what_it_means(said: Said) -> None:
    if said == "shown":
        st.caption(
            say(
                "Labels given with a suggestion in view may lean towards it. Where a reviewer has "
                "decided, the decision counts."
            )
        )
    else:
        st.caption(
            say(
                "Texts that the model has learnt from are among these, so it may look better than "
                "it is. Where a reviewer has decided, the decision counts."
            )
        )


def _draw_part(
    open_project: OpenProject, said: Said, counts: Confusions, *, in_sample: bool
) -> None:
    total = sum(counts.values())
    name = say("Random sample") if in_sample else say("All")
    share = agreed_share(counts)
    st.metric(
        say("{name} · {total:label}", name=name, total=total),
        "–" if share is None else say("{share:.1%} the same", share=share),
        help=say("The random sample does not lean towards texts that were chosen for being hard.")
        if in_sample
        else None,
    )
    if not counts:
        st.caption(say("It is here once texts drawn at random have all their labels."))
        return
    _draw_chart(open_project, counts)
    _draw_table(open_project, said, counts, in_sample=in_sample)


def _draw_chart(open_project: OpenProject, counts: Confusions) -> None:
    rows = [(label, given, number) for (label, given), number in counts.items()]
    frame = pd.DataFrame(rows, columns=["row", "column", "number"])
    model = say("Said by the model")
    people = say("Given by people")
    st.altair_chart(
        confusion(frame, model, people, _order(open_project, counts)),
        width="stretch",
        alt=say("Labels of the model and of people"),
    )


def _draw_table(
    open_project: OpenProject, said: Said, counts: Confusions, *, in_sample: bool
) -> None:
    rows = sorted(counts.items(), key=lambda one: -one[1])
    model, people = say("Model"), say("People")
    key = f"status_model_{said}_{in_sample}"
    chosen = choose_row(
        pd.DataFrame(
            {
                "row": [label for (label, _), _ in rows],
                "column": [given for (_, given), _ in rows],
                "number": [number for _, number in rows],
            }
        ),
        height=220,
        key=key,
        columns={
            "row": st.column_config.TextColumn(model),
            "column": st.column_config.TextColumn(people),
            "number": st.column_config.NumberColumn(say("Labels"), format="localized"),
        },
    )
    if chosen is not None:
        pair, number = rows[chosen]
        texts = texts_behind(open_project.access, said, pair, in_sample=in_sample, limit=SHOWN)
        draw_votes(f"{model}: {pair[0]} · {people}: {pair[1]}", texts, number, f"{key}_texts")


def _order(open_project: OpenProject, counts: Confusions) -> list[str]:
    """The labels in the order of the project, then sets of them."""
    names = [label.name for label in open_project.project.labels]
    met = {name for pair in counts for name in pair}
    return [name for name in names if name in met] + sorted(met - set(names))
