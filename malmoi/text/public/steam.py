"""Steam: Korean reviews of games, negative or positive."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, label_names

_URL = "https://raw.githubusercontent.com/bab2min/corpus/62f3097b6c6974cecda5571f2cd2b64aa3b7f01e/"

SOURCE = PublicSource(
    name="steam",
    about="Korean game reviews on Steam of 2020, rich in slang",
    homepage="https://github.com/bab2min/corpus/tree/master/sentiment",
    licence="public domain",
    licence_note="as the repository's README says",
    citation="bab2min (2020). steam.txt. https://github.com/bab2min/corpus",
    labels="0 -> 부정, 1 -> 긍정",
    texts=100_000,
    files=(
        RemoteFile(
            name="steam.txt",
            url=_URL + "sentiment/steam.txt",
            sha256=None,
            size=None,
            # Neither the file nor a published hash could be had here.
            layout=Layout(
                header=("label", "text"),
                texts=("text",),
                label="label",
                names=label_names({"0": "부정", "1": "긍정"}),
            ),
        ),
    ),
)
