"""Korean malicious comments: comments of several data sets, malicious or not."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, label_names

SOURCE = PublicSource(
    name="malicious_comments",
    about="comments of communities and news, malicious or not",
    homepage="https://github.com/ZIZUN/korean-malicious-comments-dataset",
    licence="MIT, in part CC BY-SA 4.0",
    licence_note=(
        "5,182 of the rows are from kocohub/korean-hate-speech (CC BY-SA 4.0), 2,032 from "
        "2runo/Curse-detection-data (MIT); train on this what you score on neither"
    ),
    citation=(
        "ZIZUN (2020). korean-malicious-comments-dataset. "
        "https://github.com/ZIZUN/korean-malicious-comments-dataset"
    ),
    labels="0 -> 악성, 1 -> 정상",
    texts=10_000,
    files=(
        # [mirror]: size and SHA-256 of the file in the repository at that commit.
        RemoteFile(
            name="Dataset.csv",
            url=(
                "https://raw.githubusercontent.com/ZIZUN/korean-malicious-comments-dataset/"
                "50b92f50e89bb594db5c9ecafea8d48c1dd5b943/Dataset.csv"
            ),
            sha256="8fee1801737cd9d1d3bd38eab7ba6b9ba1d8b91b566f49d980c112dcf778be04",
            size=1_054_286,
            # 25 rows are quoted as a whole, tab included: their cells keep the marks.
            layout=Layout(
                texts=("content",),
                label="lable",
                names=label_names({"0": "악성", "1": "정상", '0"': "악성", '1"': "정상"}),
            ),
        ),
    ),
)
