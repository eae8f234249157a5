"""Every public source: what is said about it, and how its files are read."""

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from malmoi.__main__ import main
from malmoi.errors import InputError
from malmoi.text.public.catalog import find_source, sources
from malmoi.text.public.description import PublicSource, RemoteFile
from malmoi.text.public.made_files import MADE_BY
from malmoi.text.public.repository_files import ARCHIVE
from malmoi.text.reading.records import iter_records
from malmoi.text.reading.sources import is_supported

SOURCES = sources()
FILES = [(source, file) for source in SOURCES.values() for file in source.files]


def is_sha256(text: str) -> bool:
    return re.fullmatch("[0-9a-f]{64}", text) is not None


def test_a_source_says_what_it_is() -> None:
    for source in SOURCES.values():
        assert re.fullmatch("[a-z_]+", source.name)
        for text in (source.about, source.licence, source.citation, source.labels):
            assert text
            assert "\n" not in text
        assert urlsplit(source.homepage).scheme == "https"
        assert source.files
        assert len({file.name for file in source.files}) == len(source.files)
        assert source.texts is None or source.texts > 0


@pytest.mark.parametrize(("source", "file"), FILES, ids=lambda value: value.name)
def test_a_file_can_be_fetched_verified_and_read(source: PublicSource, file: RemoteFile) -> None:
    url = urlsplit(file.url)
    # A commit, not a branch: what has a hash must not change.
    if file.made_by:
        assert file.sha256 is not None and file.made_by in MADE_BY and file.made_of
    if file.url.endswith(ARCHIVE):
        assert file.made_by
        assert (url.scheme, url.hostname) == ("https", "github.com")
        assert re.fullmatch(r"/[^/]+/[^/]+/archive/[0-9a-f]{40}\.tar\.gz", url.path)
    else:
        assert (url.scheme, url.hostname) == ("https", "raw.githubusercontent.com")
        assert re.fullmatch("[0-9a-f]{40}", url.path.split("/")[3])
    assert is_supported(file.name)
    assert not Path(file.name).is_absolute()
    assert ".." not in file.name
    assert len(Path(file.name).parts) <= 2
    if file.sha256 is None:
        assert file.size is None
    else:
        assert is_sha256(file.sha256)
    assert file.size is None or file.size > 0
    for variant in file.variants:
        assert is_sha256(variant.sha256)
        assert variant.sha256 != file.sha256
        assert variant.note


def test_no_two_files_are_the_same() -> None:
    hashes = [file.sha256 for _, file in FILES if file.sha256 is not None]
    assert len(set(hashes)) == len(hashes)


WRITTEN = {
    "nsmc": ("ratings_test.txt", 'id\tdocument\tlabel\n7\t재밌다 "최고\t1\n8\t별로\t0\n'),
    "nsmc_rated": (
        "reviews_rated.tsv",
        'id\tmovie_id\tdate\trating\tdocument\n7\t10001\t15.08.25\t10\t재밌다 "최고\n',
    ),
    "kote": ("val.tsv", '12\t와 진짜 ㅋㅋ\t0,28,43\n13\t"그래?"\t24\n'),
    "korean_hate_speech": (
        "labeled/dev.tsv",
        "comments\tcontain_gender_bias\tbias\thate\n"
        "믿고 본다\tFalse\tnone\tnone\n나쁜놈\tTrue\tgender\toffensive\n",
    ),
    "kmhas": ("kmhas_valid.txt", 'document\tlabel\n좋다♥\t8\n"뭐냐"\t1,3\n'),
    "naver_shopping": (
        "naver_shopping.txt",
        "5\t배송 빠르고 굿\n2\t별로예요\n4\t좋아요\n1\t최악\n",
    ),
    "steam": ("steam.txt", "0\t노래가 너무 적음\n1\t역시 재미있네요\n"),
    "korsts": (
        "sts-dev.tsv",
        "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
        "main\tMSR\t2012\t0001\t5.000\t춤을 춘다.\t춤춘다.\n",
    ),
    "question_pair": ("dev.tsv", "question1\tquestion2\tis_duplicate\n왜?\t어째서?\t0\n"),
    "chatbot": (
        "ChatbotData.csv",
        'Q,A,label\r\n12시 땡!,"하루가, 또 가네요.",0\r\n보고 싶다,연락해요,2\r\n',
    ),
    "goemotions_ko": ("train.tsv", "좋아요\t18,17\n그래\t27\n"),
    "korean_safety": (
        "question_test_ood.json",
        '[{"question": "왜?", "question_en": "Why?", "sensitive?": 1, "category": "ethical"}]',
    ),
    "malicious_comments": (
        "Dataset.csv",
        '\ufeffcontent\tlable\n좋은 글이네요\t1\n"그는 ""바보""라며 떠났다\t0"\n',
    ),
    "curse_detection": ("curse.tsv", "text\tlabel\n뭐 이런 |게 다\t1\n"),
    "hgtods": ("utterances.tsv", "speaker\ttext\nuser\t노래 틀어줘\n"),
    "okt_tweets": ("example_tweets.txt", "투표......ㅋㅋ\n@user 안녕\n"),
    "boddari_tales": ("fairytale01.csv", 'title,writer,body\n오리,누구,"옛날,\n오리가 살았다."\n'),
    "johngrib_notes": ("notes.txt", '"뭐"라고 하는 글\n다음 글\n'),
    "korean_folktales": ("tales.txt", '"이리 와," 했다\n'),
    "petition_titles": ("titles.tsv", "category\ttitle\n행정\t바꿔 주세요\n"),
    "national_petitions": (
        "briefing.csv",
        "num,category,title,petition_overview,petition_answer\n"
        '1785,인권/성평등,제목,"\n바꿔\n주세요",답\n',
    ),
    "president_speeches": ("speeches.tsv", "president\ttext\n노무현\t반갑습니다.\n"),
    "naver_movies": ("naver_2022.tsv", 'id\trating\treview\n17998769\t10\t"명작, 이다\n'),
    "petitions": (
        "petitions_2018-01.jsonl",
        '{"category": "육아/교육", "content": "바꿔\\n주세요", "num_agree": 1, "title": "제목"}\n',
    ),
}
READ = {
    "nsmc": [("7", '재밌다 "최고', "긍정"), ("8", "별로", "부정")],
    "nsmc_rated": [("7", '재밌다 "최고', "10")],
    "kote": [("12", "와 진짜 ㅋㅋ", "불평/불만,즐거움/신남,안심/신뢰"), ("13", "그래?", "없음")],
    "korean_hate_speech": [
        ("labeled/dev.tsv:2", "믿고 본다", "none"),
        ("labeled/dev.tsv:3", "나쁜놈", "offensive"),
    ],
    "kmhas": [
        ("kmhas_valid.txt:2", "좋다♥", "해당사항없음"),
        ("kmhas_valid.txt:3", "뭐냐", "외모차별,혐오욕설"),
    ],
    "naver_shopping": [
        ("naver_shopping.txt:1", "배송 빠르고 굿", "긍정"),
        ("naver_shopping.txt:2", "별로예요", "부정"),
        ("naver_shopping.txt:3", "좋아요", "긍정"),
        ("naver_shopping.txt:4", "최악", "부정"),
    ],
    "steam": [
        ("steam.txt:1", "노래가 너무 적음", "부정"),
        ("steam.txt:2", "역시 재미있네요", "긍정"),
    ],
    "korsts": [("0001:sentence1", "춤을 춘다.", None), ("0001:sentence2", "춤춘다.", None)],
    "question_pair": [
        ("dev.tsv:2:question1", "왜?", None),
        ("dev.tsv:2:question2", "어째서?", None),
    ],
    "chatbot": [
        ("ChatbotData.csv:2:Q", "12시 땡!", "일상다반사"),
        ("ChatbotData.csv:3:Q", "보고 싶다", "사랑(긍정)"),
        ("ChatbotData.csv:2:A", "하루가, 또 가네요.", "일상다반사"),
        ("ChatbotData.csv:3:A", "연락해요", "사랑(긍정)"),
    ],
    "goemotions_ko": [("train.tsv:1", "좋아요", "love,joy"), ("train.tsv:2", "그래", "neutral")],
    "korean_safety": [("question_test_ood.json:1", "왜?", "ethical")],
    "malicious_comments": [
        ("Dataset.csv:2", "좋은 글이네요", "정상"),
        ("Dataset.csv:3", '"그는 ""바보""라며 떠났다', "악성"),
    ],
    "curse_detection": [("curse.tsv:2", "뭐 이런 |게 다", "욕설")],
    "hgtods": [("utterances.tsv:2", "노래 틀어줘", "user")],
    "okt_tweets": [
        ("example_tweets.txt:1", "투표......ㅋㅋ", None),
        ("example_tweets.txt:2", "@user 안녕", None),
    ],
    "boddari_tales": [("fairytale01.csv:2", "옛날,\n오리가 살았다.", None)],
    "johngrib_notes": [("notes.txt:1", '"뭐"라고 하는 글', None), ("notes.txt:2", "다음 글", None)],
    "korean_folktales": [("tales.txt:1", '"이리 와," 했다', None)],
    "petition_titles": [("titles.tsv:2", "바꿔 주세요", "행정")],
    "national_petitions": [
        ("briefing.csv:2:title", "제목", "인권/성평등"),
        ("briefing.csv:2:petition_overview", "\n바꿔\n주세요", "인권/성평등"),
    ],
    "president_speeches": [("speeches.tsv:2", "반갑습니다.", "노무현")],
    "naver_movies": [("17998769", '"명작, 이다', "10")],
    "petitions": [("petitions_2018-01.jsonl:1", "바꿔\n주세요", "육아/교육")],
}


def write_source(name: str, folder: Path, content: str | None = None) -> Path:
    """A fetched folder with one file of the source."""
    file, written = WRITTEN[name]
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(written if content is None else content, encoding="utf-8", newline="")
    files = {
        file.name: {"url": "", "sha256": "", "size": 0, "layout": file.layout}
        for file in find_source(name).files
    }
    record = {"source": name, "homepage": "", "licence": "", "citation": "", "files": files}
    (folder / "SOURCE.json").write_text(json.dumps(record))
    return path


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_is_read_with_the_meaning_of_its_labels(name: str, tmp_path: Path) -> None:
    path = write_source(name, tmp_path)
    file = WRITTEN[name][0]
    records = list(iter_records(tmp_path))
    assert [(record.id, record.text, record.label) for record in records] == READ[name]
    assert {record.source for record in records} == {file}
    # The readers of all commands find out by SOURCE.json, for the folder and for the file.
    assert [(record.text, record.label) for record in iter_records(path)] == [
        (text, label) for _, text, label in READ[name]
    ]


def test_without_its_record_a_file_is_read_as_any_other(tmp_path: Path) -> None:
    write_source("nsmc", tmp_path)
    (tmp_path / "SOURCE.json").unlink()
    assert [record.label for record in iter_records(tmp_path)] == ["1", "0"]


def test_a_source_that_we_do_not_know_is_read_as_any_other(tmp_path: Path) -> None:
    write_source("nsmc", tmp_path)
    record = {"source": "hub:a/b", "homepage": "", "licence": "", "citation": "", "files": {}}
    (tmp_path / "SOURCE.json").write_text(json.dumps(record))
    assert [record.label for record in iter_records(tmp_path)] == ["1", "0"]


def test_columns_that_are_named_overrule_the_source(tmp_path: Path) -> None:
    write_source("korean_hate_speech", tmp_path)
    labels = [record.label for record in iter_records(tmp_path, label_column="bias")]
    assert labels == ["none", "gender"]


def test_a_file_is_the_same_from_inside_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_source("korean_hate_speech", tmp_path)
    (file,) = tmp_path.glob("labeled/*.tsv")
    labels = [record.label for record in iter_records(file)]
    monkeypatch.chdir(file.parent)
    assert [record.label for record in iter_records(file.name)] == labels
    assert any(labels)


def test_unlabelled_comments_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "unlabeled" / "unlabeled_comments_3.txt"
    path.parent.mkdir()
    path.write_text("하나\n둘\n", encoding="utf-8")
    records = list(iter_records(tmp_path))
    assert [(record.text, record.label, record.source) for record in records] == [
        ("하나", None, "unlabeled/unlabeled_comments_3.txt"),
        ("둘", None, "unlabeled/unlabeled_comments_3.txt"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nsmc", "id\tdocument\tlabel\n1\t좋다\t2\n", ":2: expected a label of 0, 1, found '2'"),
        ("kote", "1\t좋다\t3,44\n", ":1: expected a label of 0, 1, 2,"),
        ("kote", "1\t좋다\n", ":1: expected 3 fields as in the header, found 2"),
        ("naver_shopping", "5\t좋다\n3\t그냥\n", ":2: expected a label of 1, 2, 4, 5, found '3'"),
        ("kmhas", "text\tlabel\n", "no text column: expected a column named 'document'"),
    ],
)
def test_a_file_that_is_not_what_it_should_be_is_named_with_its_line(
    name: str, content: str, message: str, tmp_path: Path
) -> None:
    path = write_source(name, tmp_path, content)
    with pytest.raises(InputError) as caught:
        list(iter_records(tmp_path))
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_need_label_is_refused_where_texts_have_none(tmp_path: Path) -> None:
    write_source("korsts", tmp_path)
    with pytest.raises(InputError, match="no label column"):
        list(iter_records(tmp_path, need_label=True))


def test_a_misspelt_source_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="found 'kotee'; did you mean kote"):
        find_source("kotee")


def test_pretraining_reads_a_fetched_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tokenizer's command stands for all that read a corpus."""
    rows = "".join(f"{n % 2}\t게임이 정말 재미있네요 {n}\n" for n in range(200))
    write_source("steam", tmp_path / "steam", rows)
    command = ["train", "--corpus", str(tmp_path / "steam")]
    assert main(["tokenizer", *command, "--output", str(tmp_path / "tokenizer")]) == 0
    assert "200 of 200 texts" in capsys.readouterr().out
