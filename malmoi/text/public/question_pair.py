"""Question pair: two everyday questions that ask the same or not."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile

# [tfds] and [mirror].
_URL = (
    "https://raw.githubusercontent.com/songys/Question_pair/"
    "e84b6f0e784c10c6a22cbbc7b1e415b901baa877/"
)
_FILES = (
    # name here, name there, bytes, SHA-256
    (
        *("train.tsv", "train.txt", 441_758),
        "addf4c88b19066ad55a09f466c5c3f6428b3f2bd5d55100d3ca5b93d9d8daff9",
    ),
    (
        *("dev.tsv", "validation.txt", 49_083),
        "3928c783f561f36547fd8e0c9d78a6e1d6013db3debcf559c4135aa5536badea",
    ),
    (
        *("test.tsv", "test.txt", 54_395),
        "0d5738107ea3742de4dcaf3a358b6bfa4818781bc6aec11a9956a3fbe35f8b61",
    ),
)

SOURCE = PublicSource(
    name="question_pair",
    about="7,576 pairs of everyday questions, each question a text",
    homepage="https://github.com/songys/Question_pair",
    licence="MIT or CC BY-SA 4.0",
    licence_note=(
        "MIT according to the Hub's kor_qpair, CC BY-SA 4.0 according to Korpora; the repository "
        "itself states none that could be seen here: ask the author before you pass it on"
    ),
    citation="Youngsook Song (2018). Paired Question v.2. https://github.com/songys/Question_pair",
    labels="none: the column is_duplicate (0 the same, 1 different) is about the pair",
    texts=15_152,
    files=tuple(
        RemoteFile(
            name=name,
            url=_URL + original,
            sha256=sha256,
            size=size,
            layout=Layout(texts=("question1", "question2")),
        )
        for name, original, size, sha256 in _FILES
    ),
)
