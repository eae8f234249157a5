"""Curse-detection-data: comments of communities, abusive or not."""

from collections.abc import Iterator

from malmoi.errors import InputError
from malmoi.text.public.description import (
    Layout,
    Making,
    PublicSource,
    RemoteFile,
    label_names,
)

_COMMIT = "ff241621e103b6f220d30de324d0d07987887308"


def curse_table(members: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    """A table with tabs of lines `TEXT|LABEL`, white space collapsed.

    Raises:
        InputError: a line has no label.
    """
    yield "text\tlabel\n"
    for name, content in members:
        for number, line in enumerate(content.decode("utf-8").splitlines(), start=1):
            text, bar, label = line.rpartition("|")
            if not bar or label.strip() not in ("0", "1"):
                raise InputError(
                    f"{name}:{number}: expected a text, | and 0 or 1, found {line!r}; take "
                    "https://github.com/2runo/Curse-detection-data as it is"
                )
            yield f"{' '.join(text.split())}\t{label.strip()}\n"


SOURCE = PublicSource(
    name="curse_detection",
    about="comments of communities, abusive or not",
    homepage="https://github.com/2runo/Curse-detection-data",
    licence="MIT",
    citation="2runo (2020). 욕설 감지 데이터셋. https://github.com/2runo/Curse-detection-data",
    labels="0 -> 정상, 1 -> 욕설",
    texts=5_825,
    files=(
        # Size and SHA-256 computed here from dataset.txt of the repository at that commit.
        RemoteFile(
            name="curse.tsv",
            url=f"https://github.com/2runo/Curse-detection-data/archive/{_COMMIT}.tar.gz",
            sha256="d854fe4fd3337f8c67deedc4eb54823a005b74dbb4bc1b93b01aa1bafdca8d46",
            size=507_036,
            layout=Layout(
                texts=("text",), label="label", names=label_names({"0": "정상", "1": "욕설"})
            ),
            making=Making(members=("dataset.txt",), make=curse_table),
        ),
    ),
)
