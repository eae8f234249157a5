"""SQuARe and KoSBi: questions and sentences on sensitive topics, and headlines that led to them."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile

_URL = (
    "https://raw.githubusercontent.com/naver-ai/korean-safety-benchmarks/"
    "e32837cd19c45564ab00083fbb2a4b89ecdf83f3/"
)
_FILES = (
    # path there, columns of texts, bytes, SHA-256
    (
        *("data/KoSBi/kosbi_valid.json", ("context", "sentence"), 3_166_511),
        "94708ec6593989e1b410a64d0e610967ff3cd8d515964d79560b35c5b2cabee7",
    ),
    (
        *("data/KoSBi/kosbi_test.json", ("context", "sentence"), 3_180_782),
        "6951a61a26ad1e8aba0936285c4fbc2d92d54a1f8c8b7f4055b6abc28a6dd41b",
    ),
    (
        *("data/SQuARe/question_valid.json", ("question",), 2_595_545),
        "42d39c7b4a51b4708e9fbb9aa6aa54708b9d2997a932aae3c973edc9d9687678",
    ),
    (
        *("data/SQuARe/question_test.json", ("question",), 2_631_602),
        "c77556c5df2fcebe526b585e352690b06a1189aa6728ec403362d89b5574ae4f",
    ),
    (
        *("data/SQuARe/question_test_ood.json", ("question",), 128_642),
        "a66f4bb5e1490ac09a592f641bc72f8dfa6c7bf9326f3043cd2bc5258baafaf8",
    ),
    (
        *("data/SQuARe/response_test_ood.json", ("response",), 437_100),
        "db75284aebfe4573c9dd542b8dde48c7c656b7a07bc333d894d6af9392266b95",
    ),
    (
        *("pipeline/square/square_topic.json", ("sensitive_topic",), 2_849_800),
        "b5ceaf6677b1c5c7b05a7f9ab4cceb3a1505fb22de3988c583af4fc24480ba2e",
    ),
)

SOURCE = PublicSource(
    name="korean_safety",
    about="questions, sentences and headlines on sensitive topics (SQuARe, KoSBi)",
    homepage="https://github.com/naver-ai/korean-safety-benchmarks",
    licence="MIT",
    licence_note="of NAVER Cloud Corp.; the headlines are those of newspapers",
    citation=(
        "Hwaran Lee et al. (2023). SQuARe, ACL 2023, https://arxiv.org/abs/2305.17696; KoSBi, ACL "
        "2023 Industry Track, https://arxiv.org/abs/2305.17701"
    ),
    labels="of SQuARe's questions their kind, such as contentious or ethical; else none",
    texts=46_666,
    # [mirror]: sizes and SHA-256 of the files in the repository at that commit. Its training files
    # could not be had here.
    files=tuple(
        RemoteFile(
            name=path.rsplit("/", 1)[-1],
            url=_URL + path,
            sha256=sha256,
            size=size,
            layout=Layout(texts=texts, label="category" if texts == ("question",) else None),
        )
        for path, texts, size, sha256 in _FILES
    ),
)
