"""K-MHaS: news comments with eight kinds of hate speech or none, several to a comment."""

from malmoi.text.public.description import Layout, PublicSource, RemoteFile, label_names

# valid and test [mirror], character for character as long as the originals in the repository.
_URL = "https://raw.githubusercontent.com/adlnlp/K-MHaS/ec7a7e775d650b825872f6f538fc717822cdfc1a/"
_CLASSES = (
    *("출신차별", "외모차별", "정치성향차별", "혐오욕설", "연령차별", "성차별", "인종차별"),
    *("종교차별", "해당사항없음"),
)
_LAYOUT = Layout(
    texts=("document",),
    label="label",
    names=label_names({str(n): name for n, name in enumerate(_CLASSES)}, separator=","),
)

SOURCE = PublicSource(
    name="kmhas",
    about="news comments of 2018-2020, eight kinds of hate speech or none",
    homepage="https://github.com/adlnlp/K-MHaS",
    licence="CC BY-SA 4.0",
    citation=(
        "Jean Lee, Taejun Lim, Heejun Lee, Bogeun Jo, Yangsok Kim, Heegeun Yoon, Soyeon Caren Han "
        "(2022). K-MHaS: A Multi-label Hate Speech Detection Dataset in Korean Online News "
        "Comment. COLING 2022, pages 3530-3538"
    ),
    labels=(
        "0-8 -> 출신차별, 외모차별, 정치성향차별, 혐오욕설, 연령차별, 성차별, 인종차별, 종교차별, "
        "해당사항없음 (the README's names); several joined by a comma in the file's order"
    ),
    texts=109_692,
    files=(
        RemoteFile(
            name="kmhas_train.txt",
            url=_URL + "data/kmhas_train.txt",
            sha256=None,
            size=None,
            # Neither the file nor its published hash could be had here.
            layout=_LAYOUT,
        ),
        RemoteFile(
            name="kmhas_valid.txt",
            url=_URL + "data/kmhas_valid.txt",
            sha256="cb0df9e3cd665125b554d4c5e6f48b0801d5535ead51269134de5b85ae469c18",
            size=748_899,
            layout=_LAYOUT,
        ),
        RemoteFile(
            name="kmhas_test.txt",
            url=_URL + "data/kmhas_test.txt",
            sha256="9eaf470ee12c445817301d58672349500d6759516a730e879d36d6de17a2051a",
            size=1_902_352,
            layout=_LAYOUT,
        ),
    ),
)
