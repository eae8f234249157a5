"""HG-TODS: dialogues about music and telephones that people wrote for a dialogue system."""

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from malmoi.errors import InputError
from malmoi.text.public.description import Layout, Making, PublicSource, RemoteFile

_COMMIT = "7c8cea000b82b3da6beef3b1facecf217a72745e"
_MUSIC = "Music_knowledge_graph_grounded_dialogues"
_MUSIC_AND_MORE = "Music_commonsense_knowledge_graph_grounded_dialogues"
_MANUAL = "Manual_grounded_dialogue_dataset"


def dialogue_table(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """A table with tabs of who speaks and what, each utterance once, white space collapsed.

    Raises:
        InputError: a file has something else than such dialogues.
    """
    # The folder above tells files of one name apart.
    files = {"/".join(PurePosixPath(name).parts[-2:]): content for name, content in members}
    rows: dict[str, str] = {}
    for name in sorted(files):
        try:
            for speaker, text in _utterances(json.loads(files[name])):
                rows.setdefault(" ".join(text.split()), speaker)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{name}: expected dialogues with turns, found something else ({error!r}); take "
                "https://github.com/NLPlab-skku/HG-TODS as it is"
            ) from error
    yield "speaker\ttext\n"
    yield from (f"{speaker}\t{text}\n" for text, speaker in rows.items() if text)


def _utterances(content: Any) -> Iterator[tuple[str, str]]:
    if isinstance(content, list):
        for turn in (turn for dialogue in content for turn in dialogue["turns"]):
            for speaker in ("user", "system"):
                yield speaker, turn[f"{speaker}_message"]
        return
    for dialogues in content["dial_data"].values():
        for turn in (turn for dialogue in dialogues for turn in dialogue["turns"]):
            yield turn["role"], turn["utterance"]


SOURCE = PublicSource(
    name="hgtods",
    about="utterances of dialogues about music and about how a telephone is used",
    homepage="https://github.com/NLPlab-skku/HG-TODS",
    licence="MIT",
    citation="NLPLAB, Sungkyunkwan University (2024). https://github.com/NLPlab-skku/HG-TODS",
    labels="who speaks, user or system",
    texts=16_934,
    files=(
        # Size and SHA-256 computed here from the files of the repository at that commit. Its
        # training files are left out: they could not be had here.
        RemoteFile(
            name="utterances.tsv",
            url=f"https://github.com/NLPlab-skku/HG-TODS/archive/{_COMMIT}.tar.gz",
            sha256="50091479e72d5f4c0911bea36913234619fafef2a68e868a94ad7596db7788e6",
            size=1_690_302,
            layout=Layout(texts=("text",), label="speaker"),
            making=Making(
                members=(
                    f"{_MUSIC}/dev_dialog.json",
                    f"{_MUSIC}/test_dialog.json",
                    f"{_MUSIC_AND_MORE}/dev_dialog.json",
                    f"{_MUSIC_AND_MORE}/test_dialog.json",
                    f"{_MANUAL}/manual2dial_dial_validation.json",
                    f"{_MANUAL}/manual2dial_dial_test.json",
                ),
                make=dialogue_table,
            ),
        ),
    ),
)
