"""How far a job is, on a page."""

import streamlit as st

from malmoi.app.jobs import Key, jobs
from malmoi.app.language import say

# A redraw costs the work little at this rate.
_REDRAW_SECONDS = 0.5


@st.fragment(run_every=_REDRAW_SECONDS)
def draw_job(key: Key, what: str, *, stop: str) -> None:
    """A bar that moves by itself, and a button that stops the job; then the page is drawn anew.

    Args:
        stop: the words of the button.
    """
    job = jobs().of(key)
    if job is None or not job.is_on:
        st.rerun()
    assert job is not None
    phases = {
        "count": say("counting rows"),
        "texts": say("texts"),
        "labels": say("labels"),
    }
    phase = phases.get(job.phase, "")
    done, total = job.done, job.total
    if total:
        share = min(1.0, done / total)
        st.progress(share, text=f"{what} · {phase} {done:,} / {total:,} ({share:.0%})")
    else:
        st.progress(0.0, text=f"{what} · {phase} {done:,}" if done else what)
    if st.button(stop, icon=":material/stop_circle:", key=f"stop_{key[0]}"):
        job.stop.set()
