"""Texts by their meaning on the page 살펴보기: those like another, and those like a sentence."""

from collections.abc import Mapping

import numpy as np
import streamlit as st
from sqlalchemy import func, select

from malmoi.app import learning
from malmoi.app.explanation import explain
from malmoi.app.exploring.bulk import confirm
from malmoi.app.jobs import Job
from malmoi.app.language import say
from malmoi.app.plain_text import escaped, shortened
from malmoi.app.reviewing.one_text import shown_labels
from malmoi.app.visit import OpenProject
from malmoi.inference.tokenizing import unread_words
from malmoi.inference.vectors.sentence_encoder import SentenceEncoder, find_sentence_encoder
from malmoi.labels.access import ProjectAccess
from malmoi.labels.searching import FoundText, read_texts
from malmoi.labels.stored_text import text_hash
from malmoi.labels.tables import TextRow
from malmoi.labels.vector_index import VectorIndex, read_index
from malmoi.text.cleaning.cleaner import clean_text

_MOST_SIMILAR, _MOST_FOUND = 20, 1_000
# Cosines of malmoi-vectors on the question pairs' dev set: half of all pairs of questions are above
# this, and count as not alike;
_COSINE_OF_ANY = 0.85
# of those above this, 97 of 100 say the same, and 69 of 100 that say the same are above it.
_COSINE_OF_SAME = 0.94
# Share of the words of which the model knows no letter (assumption).
_MOST_UNREAD = 0.5
_SECONDS = 2.0
_SHOWN = 300  # characters


@st.cache_resource(show_spinner=False)
def _encoder() -> SentenceEncoder | None:
    return find_sentence_encoder(threads=1)


def texts_like(open_project: OpenProject, words: str) -> tuple[int, ...]:
    """Ids of the texts that are nearest to some words in meaning, the nearest first."""
    cleaned = clean_text(words)
    if not cleaned:
        return ()
    encoder, index = _read(open_project.access)
    _is_read(encoder, cleaned)
    return tuple(_nearest(open_project.access, index, encoder([cleaned])[0], _MOST_FOUND))


def draw_similar(open_project: OpenProject, text_id: int) -> None:
    """Draw the texts that are most like one, and the button that gives a label to some of them.

    Raises:
        InputError: the project has no such text.
    """
    access = open_project.access
    (text,) = read_texts(access, [text_id])
    encoder, index = _read(access)
    cleaned = clean_text(text.text) or text.text
    vector = index.vector(text_hash(text.text))
    if vector is None:
        vector = encoder([cleaned])[0]
    likeness = _nearest(access, index, vector, _MOST_SIMILAR + 1)
    others = [one for one in likeness if one != text_id][:_MOST_SIMILAR]
    st.subheader(
        say("Similar texts"),
        anchor=False,
        help=say("100% is the same text, 0% two texts that have nothing in common."),
    )
    is_read = _is_read(encoder, cleaned)
    if not others:
        st.caption(say("There are none yet."))
        return
    texts = [text, *read_texts(access, others)]
    cosines = [1.0, *(likeness[one] for one in others)]
    rows = [_row(one, cosine, is_read) for one, cosine in zip(texts, cosines, strict=True)]
    if not open_project.allows("reviewer"):
        for row in rows:
            st.markdown(row)
        return
    with st.container(border=True):
        chosen = [
            one.text_id
            for one, cosine, row in zip(texts, cosines, rows, strict=True)
            if st.checkbox(
                row,
                value=is_read and cosine >= _COSINE_OF_SAME,
                key=f"similar_{text_id}_{one.text_id}",
            )
        ]
    if st.button(
        say("Label the {texts} chosen as a bundle", texts=len(chosen)),
        key="explore_similar_label",
        icon=":material/checklist:",
        disabled=not chosen,
    ):
        confirm(open_project, chosen)


def _row(text: FoundText, cosine: float, is_read: bool) -> str:
    """A text, how like the other one it is, and its labels; 0% is any two texts."""
    share = max(0.0, (cosine - _COSINE_OF_ANY) / (1 - _COSINE_OF_ANY))
    is_same = is_read and cosine >= _COSINE_OF_SAME
    told = [f"{share:.0%}", say("says the same") if is_same else ""]
    told.append(escaped(shown_labels(text)))
    return f"{escaped(shortened(text.text, _SHOWN))} :gray[· {' · '.join(filter(None, told))}]"


def _is_read(encoder: SentenceEncoder, text: str) -> bool:
    """Whether the model knows the words of a text; says so where it does not."""
    if unread_words(encoder.tokenizer, [text])[0] <= _MOST_UNREAD:
        return True
    st.caption(
        say("The model of meaning hardly knows these letters. What it finds alike may be chance.")
    )
    return False


def _read(access: ProjectAccess) -> tuple[SentenceEncoder, VectorIndex]:
    """The model and the vectors that are there; says where some are still missing."""
    encoder = _encoder()
    assert encoder is not None
    index = read_index(access, encoder.identity)
    with access.reading() as connection:
        total = connection.scalar(
            select(func.count()).where(TextRow.project_id == access.project_id)
        )
    if len(index) < (total or 0):
        _draw_progress(learning.ask_for_vectors(access), len(index), total or 0)
    return encoder, index


@st.fragment(run_every=_SECONDS)
def _draw_progress(job: Job, done: int, total: int) -> None:
    if job.error is not None:
        explain(say("The meaning of the texts cannot be read."), job.error)
        return
    if not job.is_on and job.done > done:
        st.rerun()
    done = max(done, job.done)
    st.progress(
        min(1.0, done / total),
        text=say(
            "Reading the meaning of the texts: {done:,} / {total:,}. Only those that are read are "
            "found until then.",
            done=done,
            total=total,
        ),
    )


def _nearest(
    access: ProjectAccess, index: VectorIndex, vector: np.ndarray, most: int
) -> Mapping[int, float]:
    """The cosine of each text, by its id, the nearest first."""
    found = dict(index.nearest(vector, most))
    query = select(TextRow.text_sha256, TextRow.id).where(
        TextRow.project_id == access.project_id, TextRow.text_sha256.in_(found)
    )
    with access.reading() as connection:
        ids = dict(connection.execute(query).tuples().all())
    return {ids[one]: cosine for one, cosine in found.items() if one in ids}
