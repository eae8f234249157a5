"""Every sentence of the code has its Korean one, with the same facts; no other is kept."""

import ast
import json
from string import Formatter

import pytest

from malmoi.errors import InputError
from malmoi.messages import Phrase
from tests.messages import CALLS, ERRORS, catalogue, sentences
from tests.test_house import PRODUCT, name_of


def facts_of(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def test_every_sentence_is_in_the_catalogue_and_no_other() -> None:
    said, known = (
        {one.text for one in sentences()},
        {one.id for one in catalogue() if one.id and one.string},
    )
    assert (said - known, known - said) == (set(), set()), "run make messages, then fill ko.po"


def test_a_korean_sentence_has_the_facts_of_the_english_one() -> None:
    """One of an error may leave out what only a command line has to know."""
    said = {one.text for one in sentences() if one.is_said}
    wrong = [
        one.id
        for one in catalogue()
        if one.id
        and (facts_of(one.string) != facts_of(one.id))
        and (one.id in said or facts_of(one.string) - facts_of(one.id))
    ]
    assert wrong == []


def test_a_sentence_is_given_its_facts() -> None:
    wrong = [
        f"{one.path}:{one.line}"
        for one in sentences()
        if one.facts and facts_of(one.text) != one.facts
    ]
    assert wrong == []


def test_an_error_is_a_sentence_with_facts_and_no_text_of_the_moment() -> None:
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in PRODUCT
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {*ERRORS, *CALLS}
        and node.args
        and any(isinstance(part, ast.JoinedStr) for part in ast.walk(node.args[0]))
        and (node.func.id != "say" or "malmoi/app" in str(path))
    ]
    assert wrong == []


def test_an_english_count_of_one_is_no_plural() -> None:
    said = [Phrase("{texts:new text}", texts=number) for number in (0, 1, 2, 2_000)]
    assert said == ["0 new texts", "1 new text", "2 new texts", "2,000 new texts"]


def test_a_sentence_that_no_catalogue_has_stays_as_it_is() -> None:
    assert Phrase("no such sentence {that}", that=1).in_language("ko") == "no such sentence 1"
    assert Phrase("Computing…").in_language("ko") == "계산하는 중입니다…"


def test_an_error_of_another_process_is_said_as_it_was_there() -> None:
    inner = InputError("the file is empty; expected text in it", place="a.txt")
    listed = Phrase("{texts:new text}", texts=2_000)
    error = InputError("{error}, {more}, {share:.1%}", error=inner, more=[listed], share=0.5)
    again = InputError.of_json(json.loads(json.dumps(error.at("b.csv").as_json())))
    for language in ("en", "ko"):
        assert again.in_language(language) == error.at("b.csv").in_language(language)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("긍정", "긍정을 부정으로 합쳤습니다"),
        ("불만", "불만을 부정으로 합쳤습니다"),
        ("배송", "배송을 부정으로 합쳤습니다"),
        ("기타", "기타를 부정으로 합쳤습니다"),
        ("A/S", "A/S를 부정으로 합쳤습니다"),
        ("을(를)", "을(를)을 부정으로 합쳤습니다"),
        ("3", "3을 부정으로 합쳤습니다"),
        ("👍", "👍을(를) 부정으로 합쳤습니다"),
    ],
)
def test_a_particle_fits_the_word_before_it(label: str, said: str) -> None:
    sentence = "Merged {name} into {into}: {texts:text}"
    korean = Phrase(sentence, name=label, into="부정", texts=1).in_language("ko")
    assert f"{said}: 글 1건" in korean
    for place, road in (
        ("서울", "서울로"),
        ("부산", "부산으로"),
        ("대구", "대구로"),
        ("URL", "URL로"),
    ):
        assert f"{road} 합" in Phrase(sentence, name="", into=place, texts=1).in_language("ko")
