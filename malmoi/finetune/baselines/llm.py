"""A large language model as a baseline: the guideline as its prompt, one text a call.

The texts are sent to the endpoint. Answers are kept in a JSONL file under a hash of the question,
without the text, so that a run that was killed goes on and nothing is paid for twice.
"""

import asyncio
import hashlib
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from malmoi.errors import InputError
from malmoi.finetune.baselines.baseline import NO_LABEL, Baseline, fold_f1
from malmoi.finetune.baselines.llm_endpoint import (
    Answer,
    Budget,
    BudgetError,
    Endpoint,
    EndpointError,
    Messages,
    check_client,
)
from malmoi.finetune.defaults import OPENAI_URL
from malmoi.finetune.settings import LlmSettings
from malmoi.labels.tasks import is_task, read_task, task_with_labels
from malmoi.paths import runs
from malmoi.text.characters import to_nfc

KEY_VARIABLE = "OPENAI_API_KEY"

# For labels of which no task says what they mean.
_OTHER_PROMPT = Path(__file__).with_name("prompts") / "any_labels.txt"
_CORRECTION = "그것은 라벨 이름이 아니다. 다음 가운데 하나만 그대로 답한다: {labels}"
# An endpoint that fails so many texts one after another is down, not unlucky (assumption).
_FAILURES_IN_A_ROW = 5


@dataclass(kw_only=True)
class LlmCounts:
    """What became of the sample, and at what price.

    Attributes:
        sampled: texts that were to be asked about.
        nonsense: texts whose answer was no label twice; they count as wrong.
        refused: texts that the endpoint's content filter refused; they count as wrong.
        failed: texts without an answer after all tries; they are left out.
        cut: texts of which only the beginning was sent.
        out_of_budget: texts not asked about, for it could have exceeded the budget.
        retries: calls repeated after a failure.
        answers: calls that were answered, earlier runs included.
        cached: those of them that an earlier run paid for.
        without_usage: those whose cost is the most it can have been, for none was reported.
        input_tokens: of all answers.
        output_tokens: of all answers.
        spent_won: for all answers.
        lost_won: the most that calls without an answer may have been charged, in this run.
        at_temperature_0: False if the model of this run does not take it.
        latency_p95_ms: 95th percentile over answers; the median is the baseline's.
    """

    sampled: int
    nonsense: int = 0
    refused: int = 0
    failed: int = 0
    cut: int = 0
    out_of_budget: int = 0
    retries: int = 0
    answers: int = 0
    cached: int = 0
    without_usage: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    spent_won: float = 0.0
    lost_won: float = 0.0
    at_temperature_0: bool = True
    latency_p95_ms: float = 0.0


@dataclass(kw_only=True)
class LlmResult(LlmCounts):
    """What the model made of the sample.

    Attributes:
        baseline: the row of the table; its predictions are None outside what was done.
    """

    baseline: Baseline

    def summary(self) -> dict[str, Any]:
        """Row and counts, without the predictions, ready for JSON."""
        counts = asdict(self)
        del counts["baseline"]
        return self.baseline.summary() | counts

    def lines(self) -> list[str]:
        """What a reader of the table has to know besides, for a terminal."""
        lines = [
            f"{self.baseline.name}: {self.baseline.texts:,} of {self.sampled:,} sampled texts, "
            f"{self.spent_won:,.2f} won ({self.input_tokens:,} input and {self.output_tokens:,} "
            f"output tokens), latency median {self.baseline.latency_ms:,.0f} ms, "
            f"95th percentile {self.latency_p95_ms:,.0f} ms"
        ]
        for count, about in (
            (self.cached, "{:,} answers were there from an earlier run"),
            (self.retries, "{:,} calls were repeated after a failure"),
            (self.nonsense, "{:,} texts got no label name twice: counted as wrong"),
            (self.refused, "{:,} texts were refused by a content filter: counted as wrong"),
            (self.failed, "warning: {:,} texts got no answer and are left out"),
            (self.cut, "{:,} texts were longer than llm.max_characters; the rest was not sent"),
            (self.out_of_budget, "warning: {:,} texts not asked, to stay within the budget"),
            (self.without_usage, "{:,} answers without usage: counted at the most they can cost"),
            (self.lost_won, "up to {:,.2f} won more for calls that broke off"),
        ):
            if count:
                lines.append(about.format(count))
        if not self.at_temperature_0:
            lines.append("warning: the model takes no temperature, so its answers vary")
        return lines


def check_llm(settings: LlmSettings, labels: Sequence[str]) -> tuple[str, str]:
    """Key and instructions, checked before any time or money is spent.

    Raises:
        InputError: a setting is wrong, the client or the key is missing, or the prompt cannot be
            used.
    """
    settings.check()
    check_client()
    return _api_key(settings.base_url), read_prompt(settings.prompt, labels)


def ask_llm(
    texts: Sequence[str],
    label_ids: Sequence[int],
    fold_of: Sequence[int],
    labels: Sequence[str],
    seed: int,
    settings: LlmSettings,
) -> LlmResult:
    """Classify a sample of the texts with a chat model, one text a call, at temperature 0.

    The first call is made alone: a wrong key or model is found before the others start. An answer
    must be a label name and nothing else; the model is told so once more, then it counts as wrong.

    Args:
        texts: N of them.
        label_ids: one a text.
        fold_of: fold of each text, 1 to K; nothing is trained, they only part the scores.
        labels: names; a label's place is its id.
        seed: of the sample.
        settings: checked here.

    Raises:
        InputError: a setting is wrong, the key is missing, the endpoint cannot be reached, refuses,
            or fails text after text, or the budget does not reach for one text. Answers that were
            paid for stay in the cache.
    """
    key, system = check_llm(settings, labels)
    order = sample_order(label_ids, fold_of, settings.sample, seed)
    sent = {place: texts[place][: settings.max_characters] for place in order}
    rate = (settings.won_per_dollar or 0.0) / 1e6
    budget = Budget(
        limit_won=settings.budget_won,
        input_won=(settings.input_dollars or 0.0) * rate,
        output_won=(settings.output_dollars or 0.0) * rate,
    )
    with _open_cache(answer_file(settings)) as cache:
        run = _Run(settings, cache, budget, system, labels, LlmCounts(sampled=len(order)))
        asyncio.run(run.classify(sent, key))
    if not run.predictions:
        raise InputError(
            "no text was answered within llm.budget_won {budget:g} (each call is counted at the "
            "most it can cost until it is done); raise it",
            budget=settings.budget_won,
        )
    predictions = [run.predictions.get(place) for place in range(len(texts))]
    milliseconds = [answer.seconds * 1000 for answer in run.answers]
    counts = run.counts
    counts.cut = sum(len(text) < len(texts[place]) for place, text in sent.items())
    counts.answers = len(run.answers)
    counts.without_usage = sum(not answer.reported for answer in run.answers)
    counts.input_tokens = sum(answer.input_tokens for answer in run.answers)
    counts.output_tokens = sum(answer.output_tokens for answer in run.answers)
    counts.spent_won, counts.lost_won = budget.spent_won, budget.lost_won
    counts.latency_p95_ms = float(np.percentile(milliseconds, 95))
    baseline = Baseline(
        name=settings.model or "",
        predictions=predictions,
        fold_f1=fold_f1(label_ids, predictions, fold_of, len(labels)),
        train_seconds=0.0,
        latency_ms=float(np.median(milliseconds)),
        won_per_text=budget.spent_won / len(run.predictions),
    )
    return LlmResult(baseline=baseline, **vars(counts))


def answer_file(settings: LlmSettings) -> Path:
    """Where the answers are kept."""
    return settings.cache or runs("finetune") / "llm-answers.jsonl"


def sample_order(
    label_ids: Sequence[int], fold_of: Sequence[int], size: int, seed: int
) -> list[int]:
    """Places of at most `size` texts, such that every beginning is spread over labels and folds.

    So a run that its budget ends early has asked about a stratified sample, too.
    """
    generator = np.random.default_rng(seed)
    cells: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, cell in enumerate(zip(label_ids, fold_of, strict=True)):
        cells[cell].append(place)
    # The k-th of a cell's n texts stands somewhere in the k-th n-th of the whole.
    ranked = [
        ((rank + generator.random()) / len(places), int(place))
        for places in cells.values()
        for rank, place in enumerate(generator.permutation(places))
    ]
    return [place for _, place in sorted(ranked)[:size]]


def read_prompt(path: Path | None, labels: Sequence[str]) -> str:
    """The instructions for these labels, their names filled in.

    Args:
        path: a text, or a task with a prompt; None: that of the project's task with these labels,
            else one that knows nothing but the names.

    Raises:
        InputError: the file cannot be read, or it leaves a label out.
    """
    if path is None:
        task = task_with_labels(labels)
        path = _OTHER_PROMPT if task is None or task.prompt is None else task.path
    if is_task(path):
        text = read_task(path).prompt or ""
    else:
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise InputError(
                "expected a prompt to read, found {reason}", place=path, reason=reason
            ) from error
    text = text.strip()
    text = to_nfc(text).replace("{labels}", ", ".join(labels))
    absent = [label for label in labels if label not in text]
    if absent:
        raise InputError(
            "expected all labels in the prompt, found none of {absent}; write {{labels}} where "
            "their names shall stand",
            place=path,
            absent=", ".join(absent),
        )
    return text


def parse_answer(text: str, labels: Sequence[str]) -> int:
    """The id of the label that an answer is, space around it aside; `NO_LABEL` for all else."""
    answer = to_nfc(text).strip()
    return labels.index(answer) if answer in labels else NO_LABEL


class AnswerCache:
    """Answers that were paid for, by the hash of their question; one JSON line each."""

    def __init__(self, path: Path) -> None:
        """Read `path`, if it is there.

        Raises:
            InputError: a line of it is no answer.
        """
        self._path = path
        self._answers: dict[str, Answer] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        stored = path.read_bytes() if path.exists() else b""
        # A run that was killed may have left half a line, which is no answer.
        whole = stored[: stored.rfind(b"\n") + 1]
        if whole != stored:
            os.truncate(path, len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                fields = json.loads(line)
                key = fields.pop("key")
                self._answers[key] = Answer(**fields)
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise InputError(
                    "expected an answer in JSON, found {line!r}; take the line out or name "
                    "another file with --set llm.cache=FILE",
                    place=f"{path}:{number}",
                    line=line[:60],
                ) from error

    def get(self, key: str) -> Answer | None:
        """The answer to a question, if it was paid for before."""
        return self._answers.get(key)

    def add(self, key: str, answer: Answer) -> None:
        """Keep an answer, on the disk when this returns."""
        self._answers[key] = answer
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, **asdict(answer)}, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _open_cache(path: Path) -> Iterator[AnswerCache]:
    # Not beside the file, where it would stay behind: a lock file must not be deleted.
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    lock = FileLock(Path(tempfile.gettempdir()) / f"malmoi-llm-{digest}.lock")
    try:
        with lock.acquire(timeout=0):
            yield AnswerCache(path)
    except Timeout as error:
        raise InputError(
            "expected to be the only one to write here, found another run under way; wait for it "
            "or name another file with --set llm.cache=FILE",
            place=path,
        ) from error


class _Run:
    """One walk over the sample and what it counts on the way."""

    def __init__(
        self,
        settings: LlmSettings,
        cache: AnswerCache,
        budget: Budget,
        system: str,
        labels: Sequence[str],
        counts: LlmCounts,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._budget = budget
        self._system = system
        self._labels = labels
        self._failures_in_a_row = 0
        self._stopped = False
        self.predictions: dict[int, int] = {}
        self.answers: list[Answer] = []
        self.counts = counts

    async def classify(self, texts: dict[int, str], key: str) -> None:
        # What was paid before is counted before anything else is bought.
        rest = [
            (place, text)
            for place, text in texts.items()
            if not await self._classify_one(place, text, None)
        ]
        if not rest:
            return
        endpoint = Endpoint(self._settings, key, self._budget)
        queue = iter(rest)

        async def work() -> None:
            for place, text in queue:
                await self._classify_one(place, text, endpoint)

        async with endpoint:
            try:
                await self._classify_one(*next(queue), endpoint)
                workers = [asyncio.create_task(work()) for _ in range(self._settings.concurrency)]
                try:
                    await asyncio.gather(*workers)
                finally:
                    for worker in workers:
                        worker.cancel()
                    await asyncio.gather(*workers, return_exceptions=True)
            finally:
                self.counts.retries = endpoint.retries
                self.counts.at_temperature_0 = endpoint.at_temperature_0

    async def _classify_one(self, place: int, text: str, endpoint: Endpoint | None) -> bool:
        """Whether the text is dealt with; without an endpoint only what is cached can be."""
        question = [
            {"role": "system", "content": self._system},
            {"role": "user", "content": text},
        ]
        label = NO_LABEL
        if self._stopped:
            self.counts.out_of_budget += 1
            return True
        try:
            for _ in range(2):
                answer = await self._answer(question, endpoint)
                if answer is None:
                    return False
                if answer.text is None:
                    self.counts.refused += 1
                    break
                label = parse_answer(answer.text, self._labels)
                if label != NO_LABEL:
                    break
                correction = _CORRECTION.replace("{labels}", ", ".join(self._labels))
                # The same question again would get the same answer at temperature 0.
                question += [
                    {"role": "assistant", "content": answer.text},
                    {"role": "user", "content": correction},
                ]
            else:
                self.counts.nonsense += 1
        except BudgetError:
            # Not a cheaper text instead: that would leave the long ones out of the sample.
            self._stopped = True
            self.counts.out_of_budget += 1
            return True
        except EndpointError as error:
            self.counts.failed += 1
            self._failures_in_a_row += 1
            if self._failures_in_a_row >= _FAILURES_IN_A_ROW:
                raise InputError(
                    "{base_url} failed {failures} texts in a row ({error}); run the command again "
                    "later, what was answered is kept in {file}",
                    base_url=self._settings.base_url,
                    failures=self._failures_in_a_row,
                    error=error,
                    file=answer_file(self._settings),
                ) from error
            return True
        self.predictions[place] = label
        return True

    async def _answer(self, question: Messages, endpoint: Endpoint | None) -> Answer | None:
        settings = self._settings
        asked = [settings.base_url, settings.model, settings.max_output_tokens, list(question)]
        key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        answer = self._cache.get(key)
        if endpoint is None:
            if answer is None:
                return None
            self.counts.cached += 1
            self._budget.spent_won += self._budget.won(answer.input_tokens, answer.output_tokens)
        elif answer is None:
            answer = await endpoint.ask(question)
            self._failures_in_a_row = 0
            self._cache.add(key, answer)
        else:
            return answer  # counted when the cache was gone through
        self.answers.append(answer)
        return answer


def _api_key(base_url: str) -> str:
    """The key for the endpoint; a server of one's own may need none.

    Raises:
        InputError: OpenAI's needs one, or what there is cannot be one.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key and base_url == OPENAI_URL:
        raise InputError(
            "expected a key for {base_url}, found none; set {variable}",
            base_url=base_url,
            variable=KEY_VARIABLE,
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InputError(
            "expected a key in {variable}, found characters that no key has; copy it again",
            variable=KEY_VARIABLE,
        )
    return key or "none"
