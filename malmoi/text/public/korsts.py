"""KorSTS: pairs of sentences and how alike they are."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile

# [tfds] and [mirror].
_URL = (
    "https://raw.githubusercontent.com/kakaobrain/KorNLUDatasets/"
    "0df0fe7d496eb61b092e022e238c2230b29f1cbc/KorSTS/"
)
_FILES = (
    # name, bytes, SHA-256
    (
        "sts-train.tsv",
        1_046_952,
        "b5aaa7f957d6ff46f4b6834a8b0f024a9234a6eefe9289aed66746b4533da3b8",
    ),
    ("sts-dev.tsv", 307_276, "d835b65b424401fbcce6be28a78159df8d61f5b19977ea7a0b83b8cb6105f393"),
    ("sts-test.tsv", 249_596, "13f83a3440d9db52d134eb40303ce021b03264aa338fbf2871c8786ce04d2105"),
)

SOURCE = PublicSource(
    name="korsts",
    about="8,628 pairs of sentences translated from STS-B, each sentence a text",
    homepage="https://github.com/kakaobrain/kor-nlu-datasets",
    licence="CC BY-SA 4.0",
    citation=(
        "Jiyeon Ham, Yo Joong Choe, Kyubyong Park, Ilji Choi, Hyungjoon Soh (2020). KorNLI and "
        "KorSTS: New Benchmark Datasets for Korean Natural Language Understanding. "
        "arXiv:2004.03289"
    ),
    labels="none: the column score (0-5) says how alike a pair is, nothing about one sentence",
    texts=17_256,
    files=tuple(
        RemoteFile(
            name=name,
            url=_URL + name,
            sha256=sha256,
            size=size,
            layout=Layout(texts=("sentence1", "sentence2")),
        )
        for name, size, sha256 in _FILES
    ),
)
