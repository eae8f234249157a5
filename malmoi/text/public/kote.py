"""KOTE: online comments with 43 emotions or none, several to a comment."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, label_names

# The README's list; a cell holds positions in it.
EMOTIONS = (
    *("불평/불만", "환영/호의", "감동/감탄", "지긋지긋", "고마움", "슬픔", "화남/분노", "존경"),
    *("기대감", "우쭐댐/무시함", "안타까움/실망", "비장함", "의심/불신", "뿌듯함", "편안/쾌적"),
    *("신기함/관심", "아껴주는", "부끄러움", "공포/무서움", "절망", "한심함", "역겨움/징그러움"),
    *("짜증", "어이없음", "없음", "패배/자기혐오", "귀찮음", "힘듦/지침", "즐거움/신남", "깨달음"),
    *("죄책감", "증오/혐오", "흐뭇함(귀여움/예쁨)", "당황/난처", "경악", "부담/안_내킴", "서러움"),
    *("재미없음", "불쌍함/연민", "놀람", "행복", "불안/걱정", "기쁨", "안심/신뢰"),
)

# val and test [mirror]; their label counts are those that public audits report for this revision.
_URL = "https://raw.githubusercontent.com/searle-j/KOTE/cafd2c3f54a6f4b25ac74eaa02a2e76c3ef8c977/"
_LAYOUT = Layout(
    header=("id", "text", "label"),
    texts=("text",),
    label="label",
    names=label_names({str(n): emotion for n, emotion in enumerate(EMOTIONS)}, separator=","),
)

SOURCE = PublicSource(
    name="kote",
    about="comments from 12 platforms, 43 emotions and none, several to a comment",
    homepage="https://github.com/searle-j/KOTE",
    licence="MIT",
    citation=(
        "Duyoung Jeon, Junho Lee, Cheongtag Kim (2022). User Guide for KOTE: Korean Online "
        "Comments Emotions Dataset. arXiv:2205.05300"
    ),
    labels="numbers 0-43 -> emotions (없음: none), joined by a comma in the file's order",
    texts=50_000,
    files=(
        RemoteFile(
            name="train.tsv",
            url=_URL + "train.tsv",
            sha256="62c18dc385f7c140624b693a2806e98060daaf9e7427ceb7d050828d0a55f992",
            size=None,
            # Recorded by a public project for this revision; not to be had here.
            layout=_LAYOUT,
        ),
        RemoteFile(
            name="val.tsv",
            url=_URL + "val.tsv",
            sha256="c7d686ee1d63be7f57ec939f372ebdc4ada8eac1c9eeeeac207774976ab69a6e",
            size=857_808,
            layout=_LAYOUT,
        ),
        RemoteFile(
            name="test.tsv",
            url=_URL + "test.tsv",
            sha256="8d8e11c5adf374f552cfbe6f2d7b9967e7335cc86c205beeefb6fd8c6ed9deb0",
            size=843_078,
            layout=_LAYOUT,
        ),
    ),
)
