"""Naver shopping reviews, 1-2 or 4-5 stars."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, label_names

_URL = "https://raw.githubusercontent.com/bab2min/corpus/62f3097b6c6974cecda5571f2cd2b64aa3b7f01e/"

SOURCE = PublicSource(
    name="naver_shopping",
    about="Naver shopping reviews of 2020 with 1, 2, 4 or 5 stars",
    homepage="https://github.com/bab2min/corpus/tree/master/sentiment",
    licence="public domain",
    licence_note="as the repository's README says",
    citation="bab2min (2020). naver_shopping.txt. https://github.com/bab2min/corpus",
    labels="1 and 2 stars -> 부정, 4 and 5 stars -> 긍정; 3 stars are left out",
    texts=200_000,
    files=(
        RemoteFile(
            name="naver_shopping.txt",
            url=_URL + "sentiment/naver_shopping.txt",
            sha256="dc4d1aca0a148671cbe80bcb81962eee297370acab42be93c1617ce9336479c0",
            size=None,
            # Recorded by a public project that trains on this file; not to be had here.
            layout=Layout(
                header=("label", "text"),
                texts=("text",),
                label="label",
                names=label_names({"1": "부정", "2": "부정", "4": "긍정", "5": "긍정"}),
            ),
        ),
    ),
)
