"""Tweets with which open-korean-text shows what it does."""

from malmoi.text.public.description import PublicSource, RemoteFile

SOURCE = PublicSource(
    name="okt_tweets",
    about="1,000 tweets, names and addresses masked, examples of open-korean-text",
    homepage="https://github.com/open-korean-text/open-korean-text",
    licence="Apache 2.0",
    citation="Will Hohyon Ryu et al. (2014). https://github.com/open-korean-text/open-korean-text",
    labels="none",
    texts=1_000,
    files=(
        # [mirror]: size and SHA-256 of the file in the repository at that commit.
        RemoteFile(
            name="example_tweets.txt",
            url=(
                "https://raw.githubusercontent.com/open-korean-text/open-korean-text/"
                "74cc4ae7d3dab232747cd5ddb723e4b73c476e4f/src/main/resources/org/openkoreantext/"
                "processor/util/example_tweets.txt"
            ),
            sha256="e51c3c5e582995065c4190744564bb1dbd8ecf41a158b510e3df168e37587a32",
            size=86_271,
        ),
    ),
)
