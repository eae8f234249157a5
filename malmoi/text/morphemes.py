"""Korean morphemes, spacing and sentences by Kiwi (kiwipiepy).

One analyser a process, made at the first call: it holds about 0.5 GiB (measured) and cannot be
pickled. Kiwi has crashed on 40,000 repeats of a word (bab2min/kiwipiepy#158) and takes a minute for
200,000 times "a" (0.24.1, measured), so long repeats are folded before it and very long texts
analysed in pieces; offsets are those of the text that was given all the same.
"""

import ctypes
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version

from kiwipiepy import Kiwi

from malmoi.text.characters import to_nfc

# More than eight repeats of up to four characters say nothing that eight do not (assumption).
_MAX_REPEATS = 8
_repeats = re.compile(rf"(.{{1,4}}?)\1{{{_MAX_REPEATS},}}", re.DOTALL)
# The longest comment that the cleaner keeps by default; 57,000 characters took Kiwi 4 s (measured).
_PIECE_CHARACTERS = 10_000


class AnalyserError(ValueError):
    """Kiwi failed on a text; whoever walks over many texts counts it and goes on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Morpheme:
    """A morpheme and where it stands.

    Attributes:
        form: the morpheme itself, "었" of 갔다 too, which is not spelt out in the text.
        tag: its Sejong part-of-speech tag, such as NNG.
        start: its first character in the NFC form of the text.
        end: one past its last; contracted morphemes overlap ("갔": 가 and 었 on one syllable).
    """

    form: str
    tag: str
    start: int
    end: int


def analyser_version() -> str:
    """What to record beside a result that depends on the analyser."""
    return f"kiwipiepy {version('kiwipiepy')}, model {version('kiwipiepy_model')}"


def analyse(text: str) -> list[Morpheme]:
    """The morphemes of a text, in order.

    Raises:
        AnalyserError: Kiwi failed on it.
    """
    text = to_nfc(text)
    found: list[Morpheme] = []
    for first, piece in _pieces(text):
        folded, origin = _fold_repeats(piece)
        try:
            for token in _kiwi(os.getpid()).tokenize(folded):
                start, end = origin[token.start], origin[token.start + token.len]
                found.append(
                    Morpheme(form=token.form, tag=token.tag, start=first + start, end=first + end)
                )
        except Exception as error:  # whatever the C++ library lets out
            raise AnalyserError(f"Kiwi failed on {text[:40]!r}: {error}") from error
    return found


@lru_cache(maxsize=250_000)
def eojeol_morphemes(eojeol: str) -> list[tuple[str, int]]:
    """The morphemes of an eojeol by itself as `form/TAG`, and their ids in Kiwi's model.

    What classifiers of version 0.2.0 and older read. Of a very long eojeol only the beginning; one
    that Kiwi fails on is one morpheme without a tag.
    """
    folded, _ = _fold_repeats(to_nfc(eojeol[:_PIECE_CHARACTERS]))
    try:
        found = [(f"{t.form}/{t.tag}", t.id) for t in _kiwi(os.getpid()).tokenize(folded)]
    except Exception:  # whatever the C++ library lets out
        found = []
    return found or [(folded, -1)]


def morpheme_boundaries(text: str) -> list[int]:
    """Places inside the eojeols of a text's NFC form where one morpheme ends and the next begins.

    "학교에서 갔다" gives [2, 6]: 학교|에서 갔|다. A place inside a morpheme is none, as between the
    syllables of a contraction that two morphemes share.

    Raises:
        AnalyserError: Kiwi failed on the text.
    """
    text = to_nfc(text)
    edges: set[int] = set()
    inside: set[int] = set()
    for morpheme in analyse(text):
        edges |= {morpheme.start, morpheme.end}
        inside.update(range(morpheme.start + 1, morpheme.end))
    return places_inside_eojeols(text, edges - inside)


def places_inside_eojeols(text: str, places: Iterable[int]) -> list[int]:
    """Those places of a text, in order, that have no space and no end of the text beside them."""
    return [
        place
        for place in sorted(places)
        if 0 < place < len(text) and not text[place - 1].isspace() and not text[place].isspace()
    ]


def correct_spacing(text: str) -> str:
    """The text with its spaces put right; no other character changes.

    Long repeats stay as they are.

    Raises:
        AnalyserError: Kiwi failed on the text.
    """
    text = to_nfc(text)
    corrected: list[str] = []
    for _, piece in _pieces(text):
        done = 0
        for run in _repeats.finditer(piece):
            corrected += [_space(piece[done : run.start()]), run[0]]
            done = run.end()
        corrected.append(_space(piece[done:]))
    return "".join(corrected)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text in order, without the space between them.

    Blank lines end a sentence, other line breaks do not.

    Raises:
        AnalyserError: Kiwi failed on the text.
    """
    text = to_nfc(text)
    sentences: list[str] = []
    for _, piece in _pieces(text):
        folded, origin = _fold_repeats(piece)
        try:
            found = _kiwi(os.getpid()).split_into_sents(folded, return_sub_sents=False)
        except Exception as error:  # as above
            raise AnalyserError(f"Kiwi failed on {text[:40]!r}: {error}") from error
        spans: list[tuple[int, int]] = []
        for start, end in ((origin[s.start], origin[s.end]) for s in found):
            if spans and start < spans[-1][1]:
                # Kiwi cut inside a syllable (됀: 되 and ㄴ다 on one), where there is no place.
                start, _ = spans.pop()
            spans.append((start, end))
        cut = [piece[start:end].strip() for start, end in spans]
        if "".join("".join(cut).split()) != "".join(piece.split()):
            raise AnalyserError(f"Kiwi lost a part of {text[:40]!r}")
        sentences += cut
    return sentences


@cache
def _kiwi(process: int) -> Kiwi:
    """The analyser of this process; a forked one makes its own, threads do not survive a fork."""
    # More workers only serve lists of texts; several processes are what this project scales by.
    kiwi = Kiwi(num_workers=1)
    # Never freed: in a forked process it would end its threads, which are not there, and abort.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kiwi))
    return kiwi


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Pieces of at most 10,000 characters and where they begin, cut at a space where there is."""
    start = 0
    while start < len(text):
        end = start + _PIECE_CHARACTERS
        if end < len(text):
            space = text.rfind(" ", start, end)
            end = space + 1 if space > start else end
        yield start, text[start:end]
        start = end


def _fold_repeats(text: str) -> tuple[str, list[int]]:
    """The text with long repeats shortened, and the original place of each character and the end.

    What was taken out belongs to the character before it.
    """
    if not _repeats.search(text):
        return text, list(range(len(text) + 1))
    parts: list[str] = []
    origin: list[int] = []
    done = 0
    for run in _repeats.finditer(text):
        kept = run.start() + len(run[1]) * _MAX_REPEATS
        parts.append(text[done:kept])
        origin += range(done, kept)
        done = run.end()
    parts.append(text[done:])
    origin += range(done, len(text) + 1)
    return "".join(parts), origin


def _space(text: str) -> str:
    if not text.strip():
        return text
    try:
        spaced = str(_kiwi(os.getpid()).space(text))
    except Exception as error:  # as above
        raise AnalyserError(f"Kiwi failed on {text[:40]!r}: {error}") from error
    if "".join(spaced.split()) != "".join(text.split()):
        raise AnalyserError(f"Kiwi changed more than spaces in {text[:40]!r}")
    # The spaces at the ends belong to what stands around this part.
    before = text[: len(text) - len(text.lstrip())]
    return before + spaced.strip() + text[len(text.rstrip()) :]
