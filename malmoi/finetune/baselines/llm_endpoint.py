"""One question to a chat endpoint that speaks OpenAI's protocol, paid for out of a budget.

What can go wrong on the way is sorted here: what another try may mend (429, 5xx, time-outs, broken
answers) is tried again, what it cannot (a wrong key, an unknown model) ends the run in one line.
The `openai` client's own retries are off, for each try has to be counted, timed and budgeted.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import httpx2

from malmoi.errors import InputError
from malmoi.finetune.settings import LlmSettings

Messages = Sequence[dict[str, str]]

_LONGEST_WAIT_SECONDS = 60.0
# What a chat template puts around the messages (assumption; known ones take 3 to 20).
_TEMPLATE_TOKENS = 100
_RETRIED_STATUS = frozenset({408, 409, 429})


class BudgetError(Exception):
    """One more call could cost more than is left."""


class EndpointError(Exception):
    """No answer for this text, after all tries; others may still get theirs."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back and what it cost.

    Attributes:
        text: None if the endpoint's content filter refused.
        input_tokens: as reported; the most it can have been where no usage was reported.
        output_tokens: likewise.
        reported: whether the endpoint reported its usage.
        seconds: of the try that succeeded, from request to last byte.
    """

    text: str | None
    input_tokens: int
    output_tokens: int
    reported: bool
    seconds: float


@dataclass(kw_only=True)
class Budget:
    """Won that may be spent, have been, and may yet be by calls under way.

    Attributes:
        limit_won: never exceeded, as long as the endpoint respects `max_tokens`.
        input_won: of one input token.
        output_won: of one output token.
        spent_won: by answers.
        lost_won: the most that calls without a readable answer (time-outs) may have been charged.
    """

    limit_won: float
    input_won: float
    output_won: float
    spent_won: float = 0.0
    lost_won: float = 0.0
    _reserved_won: float = 0.0

    def won(self, input_tokens: int, output_tokens: int) -> float:
        """The price of so many tokens."""
        return input_tokens * self.input_won + output_tokens * self.output_won

    def reserve(self, won: float) -> None:
        """Set the price of a call aside before it is made.

        Raises:
            BudgetError: it is not there.
        """
        if self.spent_won + self.lost_won + self._reserved_won + won > self.limit_won:
            raise BudgetError
        self._reserved_won += won

    def settle(self, reserved: float, *, spent: float = 0.0, lost: float = 0.0) -> None:
        """Turn what was set aside into what the call cost."""
        self._reserved_won -= reserved
        self.spent_won += spent
        self.lost_won += lost


def check_client() -> None:
    """See that there is an OpenAI client, without the second that importing it takes.

    Raises:
        InputError: there is none.
    """
    if find_spec("openai") is None:
        raise InputError(
            "the LLM baseline needs the openai client, which is not installed; run "
            "pip install -c constraints.txt -e '.[llm]'"
        )


class Endpoint:
    """Asks one model, counting `retries` of any kind; to be used as `async with`."""

    def __init__(self, settings: LlmSettings, api_key: str, budget: Budget) -> None:
        import openai

        self._openai = openai
        try:
            self._client = openai.AsyncOpenAI(
                base_url=settings.base_url,
                api_key=api_key,
                max_retries=0,
                timeout=settings.timeout_seconds,
            )
        except httpx2.InvalidURL as error:
            raise InputError(
                "expected an address in llm.base_url, found {base_url} ({error})",
                base_url=settings.base_url,
                error=error,
            ) from error
        # The raw response: what is no chat completion must not fail inside the client.
        self._create: Callable[..., Any] = self._client.chat.completions.with_raw_response.create
        self._settings, self._api_key = settings, api_key
        most = settings.max_output_tokens
        self._options: dict[str, float] = {"temperature": 0, "max_tokens": most}
        self._budget = budget
        self._reached = self._answered = False
        self.retries = 0

    async def __aenter__(self) -> "Endpoint":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    @property
    def at_temperature_0(self) -> bool:
        """Whether the model accepts it; reasoning models do not, their answers vary."""
        return "temperature" in self._options

    async def ask(self, messages: Messages) -> Answer:
        """The answer to `messages`, after as many tries as the settings allow.

        Raises:
            BudgetError: a call, or another try, could cost more than is left.
            EndpointError: all tries failed, in a way that another text may not.
            InputError: the endpoint cannot be reached or refuses key, model or request.
        """
        for attempt in range(self._settings.retries + 1):
            try:
                return await self._try(messages)
            except _RetryableError as error:
                if error.unreachable and (attempt == self._settings.retries or not self._reached):
                    raise InputError(
                        "cannot reach {base_url} ({error}); check llm.base_url and the network",
                        base_url=self._settings.base_url,
                        error=error,
                    ) from error
                if attempt == self._settings.retries:
                    raise EndpointError(str(error)) from error
                self.retries += 1
                await asyncio.sleep(self._wait_seconds(attempt, error.retry_after))
        raise AssertionError("the last try returns or raises")

    async def _try(self, messages: Messages) -> Answer:
        # No token is shorter than a byte in the byte-level vocabularies that such models have.
        most_input = _TEMPLATE_TOKENS + sum(len(m["content"].encode()) for m in messages)
        worst = self._budget.won(most_input, self._settings.max_output_tokens)
        self._budget.reserve(worst)
        started = time.monotonic()
        spent = lost = 0.0
        try:
            # wait_for, because the client's own time-out starts anew with every byte.
            raw = await asyncio.wait_for(
                self._create(model=self._settings.model, messages=list(messages), **self._options),
                self._settings.timeout_seconds,
            )
            seconds = time.monotonic() - started
            self._reached = True
            lost = worst  # until the body turns out to be readable
            text, usage = _read_completion(raw.text)
            lost = 0.0
            self._answered = True
            tokens = usage or (most_input, self._settings.max_output_tokens)
            spent = self._budget.won(*tokens)
            return Answer(
                text=text,
                input_tokens=tokens[0],
                output_tokens=tokens[1],
                reported=usage is not None,
                seconds=seconds,
            )
        except (TimeoutError, self._openai.APITimeoutError) as error:
            lost = worst  # the endpoint may have worked on it all the same
            seconds = self._settings.timeout_seconds
            raise _RetryableError(f"no answer within {seconds:g} s") from error
        except self._openai.APIStatusError as error:
            self._reached = True
            return self._judge(error, time.monotonic() - started)
        except self._openai.APIConnectionError as error:
            unreachable = isinstance(error.__cause__, httpx2.ConnectError)
            lost = 0.0 if unreachable else worst  # cut off in the middle of the answer
            # The client only says "Connection error."; the cause knows what was wrong.
            reason = _one_line(str(error.__cause__ or error))
            raise _RetryableError(reason, unreachable=unreachable) from error
        except asyncio.CancelledError:
            lost = worst
            raise
        finally:
            self._budget.settle(worst, spent=spent, lost=lost)

    def _judge(self, error: Any, seconds: float) -> Answer:
        """An answer that is a refusal, or the error that an HTTP status amounts to."""
        status = int(error.status_code)
        told = _one_line(_told(error))
        if len(self._api_key) > 8:  # not the stand-in for no key
            told = told.replace(self._api_key, "…")
        # Azure and OpenAI refuse single texts so; hateful comments are among what is classified.
        if status == 400 and error.code == "content_filter":
            return Answer(
                text=None, input_tokens=0, output_tokens=0, reported=True, seconds=seconds
            )
        if status == 400 and self._do_without(error.param):
            raise _RetryableError(told, retry_after="0") from error
        out_of_credit = error.code == "insufficient_quota"
        if (status in _RETRIED_STATUS or status >= 500) and not out_of_credit:
            raise _RetryableError(
                f"HTTP {status}: {told}", retry_after=error.response.headers.get("retry-after")
            ) from error
        # What one text is refused for, too long for the model say, is no reason to give up on all.
        if status in (400, 413, 422) and (
            self._answered or error.code == "context_length_exceeded"
        ):
            raise EndpointError(f"HTTP {status}: {told}") from error
        advice = {
            401: "check the key in OPENAI_API_KEY",
            403: "check what the key in OPENAI_API_KEY is allowed to do",
            404: "check llm.model and llm.base_url, which usually ends in /v1",
            429: "add credit to the account",
        }.get(status, "check llm.model and what the endpoint accepts")
        raise InputError(
            "{base_url} refuses model {model} with HTTP {status} ({told}); {advice}",
            base_url=self._settings.base_url,
            model=self._settings.model,
            status=status,
            told=told,
            advice=advice,
        ) from error

    def _do_without(self, parameter: str | None) -> bool:
        """Whether an option that the model does not take could be left out or renamed."""
        # Reasoning models of OpenAI: another name for the limit, and no temperature.
        if parameter == "max_tokens" and "max_tokens" in self._options:
            self._options["max_completion_tokens"] = self._options.pop("max_tokens")
            return True
        return parameter == "temperature" and self._options.pop(parameter, None) is not None

    def _wait_seconds(self, attempt: int, retry_after: str | None) -> float:
        wait = self._settings.first_wait_seconds * 2**attempt
        # Spread out, so that calls that failed together do not come back together.
        wait *= random.uniform(0.5, 1.0)
        with suppress(TypeError, ValueError):  # absent, or the form with a date
            wait = max(0.0, float(retry_after))  # type: ignore[arg-type]
        return min(wait, _LONGEST_WAIT_SECONDS)


class _RetryableError(Exception):
    def __init__(
        self, message: str, *, unreachable: bool = False, retry_after: str | None = None
    ) -> None:
        super().__init__(message)
        self.unreachable = unreachable
        self.retry_after = retry_after


def _read_completion(body: str) -> tuple[str, tuple[int, int] | None]:
    """Text and (input, output) tokens, if reported, of a chat completion.

    Raises:
        _RetryableError: the body is no chat completion.
    """
    try:
        completion = json.loads(body)
        text = completion["choices"][0]["message"].get("content")
        usage = completion.get("usage") or {}
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise _RetryableError(f"not a chat completion: {_one_line(body)[:80]!r}") from error
    try:
        tokens = (int(usage["prompt_tokens"]), int(usage["completion_tokens"]))
    except (TypeError, KeyError, ValueError):
        tokens = None
    # A model that only reasoned, or refused in a field of its own, has no content.
    return (text if isinstance(text, str) else ""), tokens


def _told(error: Any) -> str:
    """What the endpoint itself said, without the client's words around it."""
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(message, str) and message:
            return message
    return str(error)


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:197] + "..."
