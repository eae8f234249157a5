"""Tales that the Boddari project collected."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile

SOURCE = PublicSource(
    name="boddari_tales",
    about="tales for children, each a text",
    homepage="https://github.com/yiunsr/boddari/tree/master/fairytale01",
    licence="public domain, donated works or CC BY 4.0",
    licence_note="by tale, as fairytale01/README.md of the repository says",
    citation="yiunsr (2020). 보따리 프로젝트. https://github.com/yiunsr/boddari",
    labels="none; the columns title and writer say whose tale it is",
    texts=64,
    files=(
        # [mirror]: size and SHA-256 of the file in the repository at that commit.
        RemoteFile(
            name="fairytale01.csv",
            url=(
                "https://raw.githubusercontent.com/yiunsr/boddari/"
                "9d21b9ef7e70afdd843acb4212ea8250b4c59745/boddari/csv/fairytale01.csv"
            ),
            sha256="6f09290355c00cb8625dd8b0dec6c61cc6225bf7224b0f0b6c9f62f1ecc7c09b",
            size=404_061,
            layout=Layout(texts=("body",)),
        ),
    ),
)
