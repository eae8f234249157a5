"""Korean hate speech (BEEP!): comments on entertainment news, few labelled, two million not."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile

# All [tfds]; labelled files and unlabeled_comments_5.txt [mirror] too. The test set has no labels
# and is left out.
_URL = (
    "https://raw.githubusercontent.com/kocohub/korean-hate-speech/"
    "f8d05dce2b22007bb149e5139c0060c68ad8f94b/"
)
_LAYOUT = Layout(texts=("comments",), label="hate")
_UNLABELLED = (
    # name, bytes, SHA-256
    (
        "unlabeled/unlabeled_comments_1.txt",
        57_027_899,
        "23014b1147eebd52bfd9a5ce7c5710711809894e08e971198bdafc4f8a748b90",
    ),
    (
        "unlabeled/unlabeled_comments_2.txt",
        59_334_738,
        "8bd4322293de23392567d6229e63b8e91c05b835da8a62742de838970a4199bd",
    ),
    (
        "unlabeled/unlabeled_comments_3.txt",
        58_921_899,
        "8bd93191a1c637afc66ae83c7cdfddf499805c3168807037b065ef2237e926d5",
    ),
    (
        "unlabeled/unlabeled_comments_4.txt",
        58_217_344,
        "2d947356edf36121b4a21e917898c746fa2af9a841e65de0c714b1da5dd8cb5b",
    ),
    (
        "unlabeled/unlabeled_comments_5.txt",
        3_569_176,
        "e224a1d545c2729d8f9828429af0f6ee34cd9a4ac5861c7a12d4f32b9a9ed641",
    ),
)

SOURCE = PublicSource(
    name="korean_hate_speech",
    about="comments on entertainment news: 8,367 labelled, 2,033,893 unlabelled",
    homepage="https://github.com/kocohub/korean-hate-speech",
    licence="CC BY-SA 4.0",
    citation=(
        "Jihyung Moon, Won Ik Cho, Junbum Lee (2020). BEEP! Korean Corpus of Online News Comments "
        "for Toxic Speech Detection. SocialNLP@ACL 2020, pages 25-31"
    ),
    labels=(
        "the column hate: hate, offensive or none; bias and contain_gender_bias with "
        "--label-column; unlabelled comments carry none"
    ),
    texts=2_042_260,
    files=(
        RemoteFile(
            name="labeled/train.tsv",
            url=_URL + "labeled/train.tsv",
            sha256="ebebacdcd023af2c4acc8c0a37695fb6433ac04fc009feff8f222724e303a5a9",
            size=913_546,
            layout=_LAYOUT,
        ),
        RemoteFile(
            name="labeled/dev.tsv",
            url=_URL + "labeled/dev.tsv",
            sha256="232b615d6e359a9d31dfb8370f32e1733dc5bb3f9c5430d34d7fcc7ba4b7e8ef",
            size=54_903,
            layout=_LAYOUT,
        ),
        *(
            RemoteFile(name=name, url=_URL + name, sha256=sha256, size=size)
            for name, size, sha256 in _UNLABELLED
        ),
    ),
)
