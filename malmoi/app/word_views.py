"""What lies behind a prediction, on demand: words that carried it, and words out of place."""

import pandas as pd
import streamlit as st

from malmoi.app.explanation import explain
from malmoi.app.language import say
from malmoi.app.model_choice import ChosenModel
from malmoi.app.word_map import Mark, draw_word_map
from malmoi.errors import InputError
from malmoi.inference.discriminator import Discriminator, Piece
from malmoi.inference.explaining import ExplainedWord, Explanation
from malmoi.model_folders import ENCODER, find_encoder

# As in a prediction: what is rarely above it is not worth a colour.
_PLAIN = 0.05


def show_words(chosen: ChosenModel, text: str, key: str) -> None:
    """Two views that are computed when they are asked for.

    Args:
        text: as it was given.
    """
    carried = say("Words that carried it")
    odd = say("Words out of place")
    view = st.segmented_control(
        say("Look closer"),
        [carried, odd],
        key=f"words_{key}",
        help=say(
            "The first leaves each word out and classifies again. The second is what the "
            "pre-trained ELECTRA finds unlikely in its place."
        ),
    )
    try:
        if view == carried:
            _show_carried(chosen.classifier.explain(text), text, key)
        elif view == odd:
            _show_out_of_place(text, key)
    except InputError as error:
        explain(say("This text cannot be looked at."), error)


def _show_carried(found: Explanation, text: str, key: str) -> None:
    largest = max((abs(word.weight) for word in found.words), default=0.0) or 1.0
    st.text(
        say("For {label}: blue with a solid line; against it: orange, dotted.", label=found.label)
    )
    draw_word_map(
        text,
        [
            Mark(
                start=word.start,
                end=word.end,
                strength=word.weight / largest,
                title=f"{word.weight:+.2f}",
            )
            for word in found.words
        ],
        key=f"carried_{key}",
    )
    if found.cut:
        st.caption(say("Only words of the beginning were tried."))
    with st.expander(say("As numbers")):
        _show_weights(found.words)


def _show_weights(words: tuple[ExplainedWord, ...]) -> None:
    order = sorted(words, key=lambda word: -abs(word.weight))
    st.dataframe(
        pd.DataFrame(
            {
                say("Word"): [word.text for word in order],
                say("Share of the log-odds"): [w.weight for w in order],
            }
        ),
        hide_index=True,
    )


@st.cache_resource(max_entries=1, show_spinner=False)
def _discriminator(path: str) -> Discriminator:
    return Discriminator.load(path)


def _show_out_of_place(text: str, key: str) -> None:
    path = find_encoder()
    name = path.parent.name if path.name == ENCODER else path.name
    pieces: list[Piece] = _discriminator(str(path)).out_of_place(text)
    st.text(say("The darker, the surer is {name} that another word stood there.", name=name))
    marks: list[Mark] = []
    done = 0
    for piece in pieces:
        # Pieces of one character that stands for several may lie upon each other.
        if piece.start >= done and piece.replaced > _PLAIN:
            marks.append(
                Mark(
                    start=piece.start,
                    end=piece.end,
                    strength=-piece.replaced,
                    title=f"{piece.replaced:.0%}",
                )
            )
            done = piece.end
    draw_word_map(text, marks, key=f"odd_{key}")
