"""GoEmotions-Korean: English comments of Reddit, translated by machine, with 28 emotions."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, label_names

EMOTIONS = (
    *("admiration", "amusement", "anger", "annoyance", "approval", "caring", "confusion"),
    *("curiosity", "desire", "disappointment", "disapproval", "disgust", "embarrassment"),
    *("excitement", "fear", "gratitude", "grief", "joy", "love", "nervousness", "optimism"),
    *("pride", "realization", "relief", "remorse", "sadness", "surprise", "neutral"),
)

SOURCE = PublicSource(
    name="goemotions_ko",
    about="comments of Reddit, translated by machine; only the training file",
    homepage="https://github.com/monologg/GoEmotions-Korean",
    licence="Apache 2.0",
    citation=(
        "Dorottya Demszky et al. (2020). GoEmotions: A Dataset of Fine-Grained Emotions. ACL 2020; "
        "translated by Jangwon Park, https://github.com/monologg/GoEmotions-Korean"
    ),
    labels="emotions in English, joined by commas",
    texts=43_410,
    files=(
        # [mirror]: size and SHA-256 of the file in the repository at that commit. Its dev.tsv and
        # test.tsv are left out: they evaluate, and nothing may be trained on them.
        RemoteFile(
            name="train.tsv",
            url=(
                "https://raw.githubusercontent.com/monologg/GoEmotions-Korean/"
                "e708cb1af26140ed1f3724d53d88717b77c26e0e/data/train.tsv"
            ),
            sha256="1e2ae5688f0c24ce14319f660fde0bb66aaf566bbc80b9503642c4304b89ad68",
            size=3_984_108,
            layout=Layout(
                header=("text", "label"),
                texts=("text",),
                label="label",
                names=label_names({str(n): name for n, name in enumerate(EMOTIONS)}, ","),
            ),
        ),
    ),
)
