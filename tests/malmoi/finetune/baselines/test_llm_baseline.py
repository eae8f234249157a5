"""An LLM as a baseline, against a real local server that answers, fails, stalls and babbles."""

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from malmoi.errors import InputError, UnfinishedError
from malmoi.finetune.baselines.baseline import NO_LABEL
from malmoi.finetune.baselines.llm import (
    AnswerCache,
    LlmResult,
    ask_llm,
    parse_answer,
    read_prompt,
    sample_order,
)
from malmoi.finetune.baselines.llm_endpoint import Answer
from malmoi.finetune.defaults import OPENAI_URL
from malmoi.finetune.kfold import main
from malmoi.finetune.settings import KfoldSettings, LlmSettings
from tests.malmoi.finetune.baselines.llm_server import (
    FOLD_OF,
    KEY,
    LABEL_IDS,
    TEXTS,
    Reply,
    Request,
    Server,
    completion,
    cut_off,
    drip,
    fail,
    malformed,
    right,
    say,
    stall,
)
from tests.malmoi.finetune.conftest import LABELS, WriteCsv, separable

ROOT = Path(__file__).parents[4]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield running
        running.ended.set()
        running.shutdown()


@pytest.fixture
def settings(server: Server, tmp_path: Path) -> LlmSettings:
    """A million input tokens for 1,000,000 won: a token of input 1 won, of output 10."""
    return LlmSettings(
        model="tiny",
        base_url=server.url,
        input_dollars=1000.0,
        output_dollars=10_000.0,
        won_per_dollar=1000.0,
        budget_won=1e6,
        retries=2,
        first_wait_seconds=0.01,
        timeout_seconds=300.0,
        cache=tmp_path / "runs" / "answers.jsonl",
    )


def ask(settings: LlmSettings, **changes: Any) -> LlmResult:
    given: dict[str, Any] = {"texts": TEXTS, "label_ids": LABEL_IDS, "fold_of": FOLD_OF}
    return ask_llm(labels=LABELS, seed=1, settings=settings, **(given | changes))


def refusal(settings: LlmSettings) -> str:
    with pytest.raises(InputError) as refused:
        ask(settings)
    return str(refused.value)


def test_every_text_is_asked_once_and_priced(server: Server, settings: LlmSettings) -> None:
    result = ask(settings)
    assert result.baseline.predictions == LABEL_IDS
    assert result.baseline.fold_f1 == [1.0, 1.0]
    assert result.baseline.name == "tiny"
    assert result.baseline.won_per_text == pytest.approx(120)  # 100 tokens in, 2 out
    assert result.spent_won == pytest.approx(12 * 120)
    assert (result.input_tokens, result.output_tokens) == (1200, 24)
    assert result.baseline.latency_ms is not None
    assert 0 < result.baseline.latency_ms <= result.latency_p95_ms < 300_000
    assert (result.retries, result.nonsense, result.failed, result.cached) == (0, 0, 0, 0)
    assert server.times_asked() == Counter(TEXTS)
    assert server.paths == {"/v1/chat/completions"}
    assert server.keys == {f"Bearer {KEY}"}
    assert server.asked[0]["temperature"] == 0
    assert server.asked[0]["messages"][0]["content"].endswith("꿈, 일기, 일정")
    (line,) = result.lines()
    assert line.startswith(
        "tiny: 12 of 12 sampled texts, 1,440.00 won (1,200 input and 24 output tokens), "
    )
    json.dumps(result.summary())


@pytest.mark.parametrize("trouble", [fail(500), fail(429), fail(503), malformed, cut_off])
def test_passing_trouble_is_tried_again(
    server: Server, settings: LlmSettings, trouble: Reply
) -> None:
    server.plans = {TEXTS[3]: [trouble, trouble, right], TEXTS[7]: [trouble, right]}
    result = ask(settings)
    assert result.baseline.predictions == LABEL_IDS
    assert result.retries == 3
    assert "3 calls were repeated after a failure" in result.lines()


def test_an_endpoint_that_says_when_is_asked_then(server: Server, settings: LlmSettings) -> None:
    server.plans = {TEXTS[3]: [fail(429), right]}  # says: at once
    began = time.monotonic()
    assert ask(replace(settings, first_wait_seconds=60.0)).retries == 1
    assert time.monotonic() - began < 25


@pytest.mark.parametrize("trouble", [stall, drip])
def test_a_call_that_takes_too_long_is_given_up(
    server: Server, settings: LlmSettings, trouble: Reply
) -> None:
    # The server does neither end it by itself; on a busy machine other calls may be late as well.
    settings = replace(settings, timeout_seconds=1.0, retries=10)
    server.plans = {TEXTS[3]: [trouble, right]}
    result = ask(settings)
    assert result.baseline.predictions == LABEL_IDS
    assert server.times_asked()[TEXTS[3]] >= 2
    assert result.retries >= 1
    # The server may have charged for it: at most every byte of the question and a full answer.
    assert result.lost_won > 300
    assert result.lines()[-1].startswith("up to ")


def test_texts_without_an_answer_are_left_out_and_said(
    server: Server, settings: LlmSettings
) -> None:
    server.plans = {TEXTS[3]: [fail(500)]}
    result = ask(settings)
    assert result.failed == 1
    assert result.baseline.predictions[3] is None
    assert sum(found is None for found in result.baseline.predictions) == 1
    assert server.times_asked()[TEXTS[3]] == 3
    assert "warning: 1 texts got no answer and are left out" in result.lines()
    # A failure is not kept as an answer.
    server.plans = {}
    assert ask(settings).baseline.predictions == LABEL_IDS


@pytest.mark.parametrize("trouble", [fail(500), malformed, stall])
def test_an_endpoint_that_is_down_ends_the_run(
    server: Server, settings: LlmSettings, trouble: Reply
) -> None:
    server.plan = [trouble]
    settings = replace(settings, timeout_seconds=0.3 if trouble is stall else 300.0)
    message = refusal(settings)
    assert message.startswith(f"{server.url} failed 5 texts in a row (")
    assert "\n" not in message
    assert len(server.asked) <= (5 + settings.concurrency) * 3


def test_nonsense_is_asked_again_and_then_wrong(server: Server, settings: LlmSettings) -> None:
    server.plans = {
        TEXTS[3]: [say("이 글은 꿈입니다."), right],
        TEXTS[4]: [say("몰라요"), say("꿈, 일기")],
        TEXTS[5]: [say(None)],
    }
    result = ask(settings)
    assert result.baseline.predictions[3] == LABEL_IDS[3]
    assert result.baseline.predictions[4:6] == [NO_LABEL, NO_LABEL]
    assert result.nonsense == 2
    assert result.baseline.mean_f1 < 1
    # All answers are paid for, whatever they are worth.
    assert result.answers == 15
    assert result.baseline.won_per_text == pytest.approx(15 * 120 / 12)
    again = [asked for asked in server.asked if len(asked["messages"]) == 4]
    assert {asked["messages"][1]["content"] for asked in again} == set(TEXTS[3:6])
    assert "2 texts got no label name twice: counted as wrong" in result.lines()


def test_a_content_filter_refuses_one_text(server: Server, settings: LlmSettings) -> None:
    server.plans = {TEXTS[3]: [fail(400, "filtered", code="content_filter")]}
    result = ask(settings)
    assert (result.refused, result.failed) == (1, 0)
    assert result.baseline.predictions[3] == NO_LABEL
    assert ask(settings).refused == 1
    assert server.times_asked()[TEXTS[3]] == 1


def test_one_text_that_is_too_long_is_left_out(server: Server, settings: LlmSettings) -> None:
    too_long = fail(400, "too many tokens", code="context_length_exceeded")
    server.plans = {text: [too_long] for text in TEXTS[:2]} | {TEXTS[9]: [fail(413, "too large")]}
    result = ask(settings)
    assert (result.failed, result.retries) == (3, 0)
    assert sum(found is None for found in result.baseline.predictions) == 3


def test_of_a_very_long_text_only_the_beginning_is_sent(
    server: Server, settings: LlmSettings
) -> None:
    settings = replace(settings, max_characters=50)
    texts = [TEXTS[0] + " 그리고" * 30_000, *TEXTS[1:]]
    result = ask(settings, texts=texts)
    assert result.baseline.predictions == LABEL_IDS
    assert max(map(len, server.times_asked())) == 50
    assert "1 texts were longer than llm.max_characters; the rest was not sent" in result.lines()


def kfold_settings(
    settings: LlmSettings, changes: dict[str, Any], data: Path, encoder: Path
) -> KfoldSettings:
    """Two folds of an epoch, and a chat model."""
    keys = {name: value for name, value in asdict(settings).items() if value is not None}
    return KfoldSettings(
        data=data,
        model=str(encoder),
        output=Path("run"),
        folds=2,
        epochs=1,
        baselines=True,
        set=tuple(f"llm.{name}={value}" for name, value in (keys | changes).items()),
    )


def test_trained_folds_survive_an_endpoint_that_is_down(
    encoder: Path,
    write_csv: WriteCsv,
    server: Server,
    settings: LlmSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = {"timeout_seconds": 0.2, "retries": 0}
    run = kfold_settings(settings, keys, write_csv(separable()), encoder)
    server.plan = [stall]
    with pytest.raises(UnfinishedError, match=r"failed 5 texts in a row .* is finished is kept"):
        main(run)
    work = Path(".run.work")
    assert len(list(work.glob("*.npz"))) == 2 and (work / "model").is_dir()
    assert not Path("run").exists()
    server.plan, keys = [say("꿈")], {"timeout_seconds": 300.0, "retries": 0}
    capsys.readouterr()
    run = kfold_settings(settings, keys, write_csv(separable()), encoder)
    main(run)
    assert "3 of 3 trainings are done" in capsys.readouterr().out
    report = json.loads(Path("run/report.json").read_text(encoding="utf-8"))
    asked = report["baselines"][-1]
    assert (asked["name"], asked["texts"], asked["answers"]) == ("tiny", 63, 63)
    assert "tiny" in Path("run/report.html").read_text(encoding="utf-8")
    # Nothing is trained before the key is known to be there.
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setattr("malmoi.finetune.encoder_run._train", None)
    run = kfold_settings(settings, {"base_url": OPENAI_URL}, write_csv(separable()), encoder)
    run.output = Path("other")
    with pytest.raises(InputError, match="expected a key for https"):
        main(run)


def test_the_budget_is_not_exceeded(server: Server, settings: LlmSettings) -> None:
    settings = replace(settings, budget_won=3000.0)
    result = ask(settings)
    done = sum(found is not None for found in result.baseline.predictions)
    assert 1 <= done < 12
    assert result.out_of_budget == 12 - done
    assert result.spent_won == pytest.approx(done * 120)
    assert result.spent_won <= 3000
    assert len(server.asked) == done
    assert f"warning: {12 - done} texts not asked, to stay within the budget" in result.lines()
    # What was paid counts in the next run, too: more texts need a higher budget.
    spent_before = len(server.asked)
    repeated = ask(settings)
    assert repeated.cached == done
    assert repeated.spent_won <= 3000
    assert len(server.asked) - spent_before <= repeated.answers - done
    settings = replace(settings, budget_won=1e6)
    assert ask(settings).baseline.predictions == LABEL_IDS
    assert server.times_asked() == Counter(TEXTS)


def test_a_dear_endpoint_cannot_overrun_by_calls_under_way(
    server: Server, settings: LlmSettings
) -> None:
    """Each call costs the most it can: all bytes of the question, and a whole answer."""
    system = len(read_prompt(None, LABELS).encode())
    most = system + len(TEXTS[0].encode())
    usage = {"prompt_tokens": most, "completion_tokens": settings.max_output_tokens}
    server.plan = [lambda request, text: request.send(200, completion(text.split()[0], usage))]
    settings = replace(settings, budget_won=5000.0)
    settings = replace(settings, concurrency=12)
    assert ask(settings).spent_won <= 5000


def test_answers_without_usage_cost_the_most_they_can(
    server: Server, settings: LlmSettings
) -> None:
    server.plans = {TEXTS[3]: [say("꿈", usage=None)]}
    result = ask(settings)
    assert result.without_usage == 1
    assert result.spent_won > 12 * 120


def test_a_killed_run_goes_on_and_pays_nothing_twice(
    server: Server, settings: LlmSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        pass

    keep = AnswerCache.add

    def kill(cache: AnswerCache, key: str, answer: Answer) -> None:
        keep(cache, key, answer)
        if len(server.asked) == 5:
            raise KilledError

    settings = replace(settings, concurrency=1)
    with monkeypatch.context() as killing, pytest.raises(KilledError):
        killing.setattr(AnswerCache, "add", kill)
        ask(settings)
    assert len(server.asked) == 5
    with settings.cache.open("a", encoding="utf-8") as file:
        file.write('{"key": "half a li')  # and killed while writing
    result = ask(settings)
    assert result.baseline.predictions == LABEL_IDS
    assert result.cached == 5
    assert result.spent_won == pytest.approx(12 * 120)
    assert server.times_asked() == Counter(TEXTS)
    assert "5 answers were there from an earlier run" in result.lines()
    # Neither texts nor the key are kept.
    kept = settings.cache.read_text(encoding="utf-8")
    assert "이야기" not in kept and KEY not in kept
    # All are there: the endpoint is not needed any more.
    server.plan = [fail(500)]
    assert ask(settings).baseline.fold_f1 == result.baseline.fold_f1


def test_another_model_or_prompt_is_asked_anew(
    server: Server, settings: LlmSettings, tmp_path: Path
) -> None:
    ask(settings)
    settings = replace(settings, model="larger")
    assert ask(settings).cached == 0
    settings = replace(settings, prompt=tmp_path / "prompt.txt")
    settings.prompt.write_text("라벨: {labels}", encoding="utf-8")
    assert ask(settings).cached == 0
    assert server.asked[-1]["messages"][0]["content"] == "라벨: 꿈, 일기, 일정"


def test_what_no_further_try_mends_ends_the_run_after_one_call(
    server: Server, settings: LlmSettings
) -> None:
    for reply, told in (
        (fail(401, f"Incorrect API key provided: {KEY}"), "HTTP 401"),
        (fail(404, "The model `tiny` does not exist"), "`tiny` does not exist"),
        (fail(429, "You exceeded your quota", code="insufficient_quota"), "exceeded your quota"),
        (fail(400, "no such role: system"), "no such role: system"),
    ):
        server.plan = [reply]
        server.asked.clear()
        message = refusal(settings)
        assert server.url in message and told in message and KEY not in message
        assert len(server.asked) == 1


def test_what_cannot_be_asked_is_refused_before_anything_is_sent(
    server: Server, settings: LlmSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai = "https://api.openai.com/v1"
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("꿈인지 일기인지 말하라", encoding="utf-8")
    for changes, named in (
        ({"model": None}, "llm.model"),
        ({"base_url": "localhost:8000/v1"}, "localhost:8000/v1"),
        ({"output_dollars": None}, "llm.output_dollars"),
        ({"won_per_dollar": None}, "llm.won_per_dollar"),
        ({"sample": 0}, "llm.sample"),
        ({"budget_won": float("nan")}, "llm.budget_won"),
        ({"budget_won": 1.0}, "llm.budget_won"),
        ({"prompt": prompt}, "일정"),
        ({"prompt": tmp_path / "absent.txt"}, "No such file"),
    ):
        message = refusal(replace(settings, **changes))  # type: ignore[arg-type]
        assert named in message and "\n" not in message
    monkeypatch.setenv("OPENAI_API_KEY", "sk-열쇠")
    assert "OPENAI_API_KEY" in refusal(settings)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert openai in refusal(replace(settings, base_url=openai))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "openai", None)
        assert ".[llm]" in refusal(settings)
    assert not server.asked
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        away = replace(settings, base_url=f"http://127.0.0.1:{free.getsockname()[1]}/v1")
        assert away.base_url in refusal(away)  # while nobody else can listen there
    assert ask(settings).baseline.mean_f1 == 1  # a server of one's own needs no key
    kept = settings.cache.read_text(encoding="utf-8")
    settings.cache.write_text("nonsense\n" + kept, encoding="utf-8")
    assert f"{settings.cache}:1" in refusal(settings)


def test_models_that_take_no_temperature_are_asked_without(
    server: Server, settings: LlmSettings
) -> None:
    def reasoning(request: Request, text: str) -> None:
        asked = server.asked[-1]
        for name in ("max_tokens", "temperature"):
            if name in asked:
                fail(400, f"Unsupported: {name}", param=name)(request, text)
                return
        right(request, text)

    server.plan = [reasoning]
    settings = replace(settings, concurrency=1)
    result = ask(settings)
    assert result.baseline.predictions == LABEL_IDS
    assert server.asked[-1]["max_completion_tokens"] == 32
    assert "warning: the model takes no temperature, so its answers vary" in result.lines()


def test_calls_under_way_are_limited(server: Server, settings: LlmSettings) -> None:
    under_way: list[str] = []
    most = 0
    three = threading.Event()

    def slow(request: Request, text: str) -> None:
        nonlocal most
        if len(server.asked) > 1:  # the first question goes alone
            under_way.append(text)
            if len(under_way) >= 3:
                time.sleep(0.2)  # a fourth would come in meanwhile
                three.set()
            three.wait()
            most = max(most, len(under_way))
            under_way.remove(text)
        right(request, text)

    server.plan = [slow]
    settings = replace(settings, concurrency=3)
    ask(settings)
    assert most == 3


def test_only_the_sample_is_asked(server: Server, settings: LlmSettings) -> None:
    settings = replace(settings, sample=6)
    result = ask(settings)
    asked = [place for place, found in enumerate(result.baseline.predictions) if found is not None]
    assert len(server.asked) == len(asked) == result.sampled == 6
    assert Counter((LABEL_IDS[place], FOLD_OF[place]) for place in asked) == dict.fromkeys(
        [(label, fold) for label in range(3) for fold in (1, 2)], 1
    )


def test_every_beginning_of_the_sample_is_stratified() -> None:
    label_ids = [0] * 800 + [1] * 200
    fold_of = [1 + place % 5 for place in range(1000)]
    order = sample_order(label_ids, fold_of, 1000, seed=3)
    assert sorted(order) == list(range(1000))
    for size in (50, 100, 500):
        assert sum(label_ids[place] for place in order[:size]) == pytest.approx(size / 5, abs=4)
        per_fold = Counter(fold_of[place] for place in order[:size])
        assert all(count == pytest.approx(size / 5, abs=4) for count in per_fold.values())
    assert sample_order(label_ids, fold_of, 50, seed=3) == order[:50]
    assert sample_order(label_ids, fold_of, 50, seed=4) != order[:50]


def test_an_answer_is_a_label_name_or_nothing() -> None:
    for answer, expected in (
        ("꿈", 0),
        (" 일정\n", 2),
        ("\u1101\u116e\u11b7", 0),  # decomposed
        ("", NO_LABEL),
        ("꿈.", NO_LABEL),
        ("일기 또는 일정", NO_LABEL),
        ("라벨: 꿈", NO_LABEL),
        ("메모", NO_LABEL),
    ):
        assert parse_answer(answer, LABELS) == expected


def test_the_repository_has_a_prompt_for_every_label_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for labels, part in (
        (["꿈", "일기", "일정", "메모", "오류"], "가위눌림"),
        (["긍정", "부정", "중립"], "비꼼은 속뜻을 따른다"),
        (["스포츠", "정치"], "스포츠, 정치"),
    ):
        monkeypatch.setenv("MALMOI_HOME", str(ROOT))
        prompt = read_prompt(None, labels)
        assert part in prompt
        assert prompt.endswith(f": {', '.join(labels)}")
        assert "{" not in prompt
