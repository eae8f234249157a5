"""NSMC: Naver movie reviews, negative or positive."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, Variant, label_names

# URLs, sizes and SHA-256 [tfds]; the same values stand in `datasets/nsmc/dataset_infos.json` of
# https://github.com/huggingface/datasets. The originals themselves could not be had here.
_URL = "https://raw.githubusercontent.com/e9t/nsmc/cc0670e872d4ac27bfe36c87456783004b39ef6c/"
_LAYOUT = Layout(texts=("document",), label="label", names=label_names({"0": "부정", "1": "긍정"}))
_REBUILT = (
    "not the official split but one rebuilt from the raw release (same recipe, another draw): "
    "scores compare within sampling noise, say so when you report them"
)

SOURCE = PublicSource(
    name="nsmc",
    about="Naver movie reviews of up to 140 characters, half of them positive",
    homepage="https://github.com/e9t/nsmc",
    licence="CC0 1.0",
    citation=("Lucy Park (2016). Naver Sentiment Movie Corpus v1.0. https://github.com/e9t/nsmc"),
    labels="0 -> 부정 (ratings 1-4), 1 -> 긍정 (ratings 9-10); neutral reviews are left out",
    texts=200_000,
    files=(
        RemoteFile(
            name="ratings_train.txt",
            url=_URL + "ratings_train.txt",
            sha256="e03b7d14e9e41be8d464a28057cd25d7396c53e67aa7fd5f7e552c59b0ee2940",
            size=14_628_807,
            variants=(
                Variant(
                    sha256="bb2f183c867dc64c2a4c6facb90fecf6584246ee94963a07af7d5ad25081cc1b",
                    size=14_637_202,
                    note=_REBUILT,
                ),
            ),
            layout=_LAYOUT,
        ),
        RemoteFile(
            name="ratings_test.txt",
            url=_URL + "ratings_test.txt",
            sha256="8ac9f64052f11dbf6ae0acb5e038f03d90a76f0eda7820cfb3a92d02edfcebda",
            size=4_893_335,
            variants=(
                Variant(
                    sha256="2a7575f5ffbb44fac502cecc518727e25e9a126869636453c1e68b29c7b26d5b",
                    size=4_901_163,
                    note=_REBUILT,
                ),
            ),
            layout=_LAYOUT,
        ),
    ),
)
