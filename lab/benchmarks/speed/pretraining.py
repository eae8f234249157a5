"""How fast is a pre-training step? Useful tokens a second, beside the loop everybody writes first.

    python -m lab.benchmarks.speed.pretraining

On rated reviews, preset small, taken in turns within one run:

- the plain loop: stock networks, fp32, texts in random order padded to the longest of the batch,
  logits at every position, transformers' default attention and dropout, AdamW as it comes;
- ours, texts of like length side by side (what a CPU takes), rows up to 128 tokens;
- ours, texts packed into rows of 128.

Useful tokens are those of the texts with [CLS] and [SEP]; padding is none. Beside them: the time
that the step's matrix products need alone at the machine's own rate, measured in the same rounds
at the networks' own shapes, as a share of the step (of the linear layers; and with attention's own
products counted at the same rate, padding included); each arm's peak memory in a process of its
own; the cost of a token in corpora of 10^5 to 10^7 tokens. On a rented GPU, where the texts are
not, `--corpus` takes the tokenized corpus that `lab/release/rented_gpu.py` packs, with
`--device cuda --tokens-per-batch 65536`.
"""

import gc
import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch.autograd import DeviceType
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile
from transformers import PreTrainedTokenizerFast

from lab.benchmarks.data import RATED_REVIEWS, DataSettings
from lab.benchmarks.result_files import write_result
from malmoi.command_line import run_command
from malmoi.devices import (
    attention_for,
    choose_device,
    keep_freed_memory,
    matrix_dtype,
    prefers_bf16,
)
from malmoi.errors import InputError
from malmoi.pretrain.config.defaults import PRESETS, PresetName
from malmoi.pretrain.config.run_config import read_config
from malmoi.pretrain.config.settings import PretrainSettings
from malmoi.pretrain.data.batches import Prefetcher, iter_plans
from malmoi.pretrain.data.tokenized import TokenizedCorpus, is_tokenized, open_tokenized
from malmoi.pretrain.engine.checkpoint import TrainerState
from malmoi.pretrain.engine.loop import Trainer, compile_networks, make_objective
from malmoi.pretrain.engine.optimizer import Optimizers
from malmoi.pretrain.engine.processes import Processes
from malmoi.pretrain.model.cost import hardware_flops, matrix_seconds
from malmoi.pretrain.model.networks import ElectraPair, build_pair
from malmoi.pretrain.objectives.cost import matrix_shapes
from malmoi.pretrain.plan import Machine, plan
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.reading.records import iter_records
from malmoi.tokenizer.training import train_tokenizer

RESULTS = Path(__file__).parents[1] / "results" / "pretraining.json"
MAX_LENGTH = 128
PLAIN_TEXTS = 128
"""Texts of the plain loop's batch: the paper's for small."""


@dataclass(kw_only=True)
class PretrainingSpeedSettings(DataSettings):
    """How much is measured."""

    preset: PresetName = "small"
    """Networks to train."""
    corpus: Path | None = None
    """Texts to tokenise with a vocabulary of their own, or a tokenized corpus; by default the rated
    reviews."""
    texts: int = 100_000
    """As many of them, the first."""
    tokens_per_batch: int | None = None
    """Tokens in a step of our loop; by default the preset's, which do not fill a GPU."""
    rounds: int = 7
    """Turns of each arm; the median ratio is reported."""
    device: str = "auto"
    """auto, cpu or cuda."""
    output: Path = RESULTS
    """JSON file of the results."""


class Plain:
    """The loop that reproductions begin with."""

    def __init__(
        self,
        settings: PretrainingSpeedSettings,
        corpus: TokenizedCorpus,
        tokenizer: PreTrainedTokenizerFast,
        device: torch.device,
    ) -> None:
        torch.manual_seed(0)
        self.pair = build_pair(PRESETS[settings.preset], tokenizer, dropout=0.1).to(device).train()
        self.optimizer = torch.optim.AdamW(self.pair.parameters(), lr=1e-4)
        self.corpus, self.tokenizer, self.device = corpus, tokenizer, device
        self.random = np.random.default_rng(0)

    def step(self) -> int:
        """One optimizer step. Returns its useful tokens."""
        corpus, tokenizer = self.corpus, self.tokenizer
        chosen = self.random.integers(len(corpus), size=PLAIN_TEXTS)
        rows = [corpus.ids[corpus.offsets[i] : corpus.offsets[i + 1]].tolist() for i in chosen]
        rows = [[tokenizer.cls_token_id, *row, tokenizer.sep_token_id] for row in rows]
        encoded = tokenizer.pad({"input_ids": rows}, return_tensors="pt").to(self.device)
        ids, mask = encoded["input_ids"], encoded["attention_mask"]
        special = (ids < 5) | (mask == 0)
        masked = (torch.rand(ids.shape, device=self.device) < 0.15) & ~special
        assert self.pair.generator is not None
        logits = self.pair.generator(
            input_ids=ids.masked_fill(masked, tokenizer.mask_token_id), attention_mask=mask
        ).logits
        generator_loss = functional.cross_entropy(logits[masked], ids[masked])
        with torch.no_grad():
            samples = torch.distributions.Categorical(logits=logits[masked]).sample()
            corrupted = ids.masked_scatter(masked, samples)
        labels = (corrupted != ids).long()
        loss = self.pair.discriminator(input_ids=corrupted, attention_mask=mask, labels=labels).loss
        (generator_loss + 50 * loss).backward()
        torch.nn.utils.clip_grad_norm_(self.pair.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return int(mask.sum())


class Ours:
    """The engine's own step; batches are made in a thread beside it, as in a run."""

    def __init__(
        self,
        speed: PretrainingSpeedSettings,
        corpus: TokenizedCorpus,
        tokenizer: PreTrainedTokenizerFast,
        device: torch.device,
        *,
        batching: Literal["length", "packed"],
    ) -> None:
        given = PretrainSettings(
            corpus=Path("-"),
            recipe="rtd",
            max_steps=10**9,
            max_length=MAX_LENGTH,
            preset=speed.preset,
            tokens_per_batch=speed.tokens_per_batch,
            set=(f"batching.rows={batching}",),
        )
        self.plan = plan(
            read_config(given),
            lengths=corpus.lengths,
            checkpoint=None,
            machine=Machine(device=device.type, prefers_bf16=prefers_bf16(device)),
        )
        torch.manual_seed(0)
        self.pair: ElectraPair = build_pair(PRESETS[speed.preset], tokenizer).to(device).train()
        self.pair.set_attention(attention_for(device))
        compiled = compile_networks(self.pair, self.plan.execution, batching)
        processes = Processes(device=device)
        self.trainer = Trainer(
            self.pair,
            Optimizers(self.pair, self.plan.optimizer),
            make_objective(
                self.pair,
                corpus,
                tokenizer,
                self.plan.objective,
                processes,
                self.plan.networks.precision,
            ),
            self.plan,
            processes,
            TrainerState(),
            flops_per_token=0.0,
            compiled=compiled,
        )
        plans = iter_plans(
            corpus.lengths,
            self.plan.batching.tokens_per_batch,
            0,
            row_length=self.plan.batching.row_length,
        )
        self.batches = Prefetcher(corpus, plans, tokenizer, device)
        self.counts = torch.zeros(1)

    def step(self) -> int:
        """One optimizer step. Returns its useful tokens, without waiting for the device."""
        batch = next(self.batches)
        _, result = self.trainer.take_step(batch, 0.5)
        self.trainer.progress.step += 1
        self.counts = result.counts
        return batch.num_tokens

    def shapes(self) -> dict[tuple[int, int, int], int]:
        """The matrix products of the last step."""
        positions, masked = self.trainer.last_positions, int(self.counts[0])
        return matrix_shapes(self.pair, self.plan.objective, positions, masked)


ARMS: dict[str, Callable[..., Any]] = {
    "plain loop": Plain,
    "ours, like lengths": partial(Ours, batching="length"),
    "ours, packed": partial(Ours, batching="packed"),
}


def main(settings: PretrainingSpeedSettings) -> None:
    """Measure, print the table, write the results."""
    if settings.corpus is None:
        settings.corpus = RATED_REVIEWS.find(settings.folder)
    device = choose_device(settings.device)
    keep_freed_memory(device)  # as pretrain/run.py does; here for the plain loop too
    corpus, tokenizer = tokenized_texts(settings)
    needed = (settings, corpus, tokenizer, device)
    memory = {name: memory_alone(name, settings) for name in ARMS}
    print("peak memory alone, GiB:", memory, flush=True)
    arms: dict[str, Any] = {name: make(*needed) for name, make in ARMS.items()}
    # Attention's own products are in these, and not in the linear layers' share below.
    flops = {
        name: hardware_flops_per_token(arm) for name, arm in arms.items() if isinstance(arm, Ours)
    }
    rounds = take_turns(arms, flops, settings.rounds, device)
    ours = arms["ours, like lengths"]
    result: dict[str, Any] = {
        "preset": settings.preset,
        "corpus": settings.corpus.name,
        "vocab_size": len(tokenizer),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "dtype": str(matrix_dtype(device)).removeprefix("torch."),
        "texts": settings.texts,
        "mean_tokens_a_text": float(corpus.lengths.mean()) + 2,
        "tokens_per_batch": ours.plan.batching.tokens_per_batch,
        **medians_of(rounds, list(arms)),
        "hardware_flops_per_useful_token": {name: round(each) for name, each in flops.items()},
        "where_the_time_goes": where_time_goes(ours.step, device),
        "rounds": rounds,
        "peak_memory_gib": memory,
    }
    for arm in arms.values():
        if isinstance(arm, Ours):
            arm.batches.close()
    del arms, arm, ours
    gc.collect()
    # Now too: a rented machine may be taken back before the rest is measured.
    write_result(settings.output, result)
    result["cost_of_a_token"] = cost_by_corpus_size(settings, corpus, tokenizer, device)
    write_result(settings.output, result)
    for name, ratio in result["median_ratio_to_plain_loop"].items():
        share = result["median_share_of_matrix_rate"][name]
        mfu = result["median_mfu_with_attention"][name]
        print(
            f"{name:20} {result['median_useful_tokens_per_second'][name]:8,.0f} tokens/s  "
            f"{ratio:5.2f}x  linear layers alone {share:.0%} of the step, all matrix products "
            f"{mfu:.0%} of their rate"
        )


def take_turns(
    arms: dict[str, Any], flops: dict[str, float], number: int, device: torch.device
) -> list[dict[str, float]]:
    """So many rounds, each a turn of every arm: tokens a second, and shares of the matrix rate.

    Args:
        flops: operations in matrix products for each useful token, of our arms.
    """
    dtype = matrix_dtype(device)
    for arm in arms.values():
        timed(arm.step, device)  # shapes seen for the first time cost more
    rounds: list[dict[str, float]] = []
    for turn in range(number):
        row: dict[str, float] = {}
        for name, arm in arms.items():
            tokens, seconds, steps = timed(arm.step, device)
            row[name] = tokens / seconds
            if isinstance(arm, Ours):
                alone, rate = matrix_seconds(arm.shapes(), device, dtype, repeats=3)
                row[f"{name}: share of matrix rate"] = steps * alone / seconds
                row[f"{name}: all products"] = flops[name] * row[name] / rate
                row[f"{name}: matrix GFLOP/s"] = rate / 1e9
        rounds.append(row)
        print(turn, {key: round(value, 3) for key, value in row.items()}, flush=True)
    return rounds


def medians_of(rounds: list[dict[str, float]], arms: list[str]) -> dict[str, Any]:
    """What results have of the rounds: medians, and the median ratio to the plain loop."""
    medians = {key: statistics.median(row[key] for row in rounds) for key in rounds[0]}
    ours = [name for name in arms if name != "plain loop"]

    def of_ours(what: str) -> dict[str, float]:
        return {name: round(medians[f"{name}: {what}"], 3) for name in ours}

    return {
        "median_useful_tokens_per_second": {name: round(medians[name]) for name in arms},
        "median_ratio_to_plain_loop": {
            name: round(statistics.median(row[name] / row["plain loop"] for row in rounds), 2)
            for name in ours
        },
        "median_share_of_matrix_rate": of_ours("share of matrix rate"),
        "median_mfu_with_attention": of_ours("all products"),
        "matrix_gflops": round(medians["ours, like lengths: matrix GFLOP/s"]),
    }


def tokenized_texts(
    settings: PretrainingSpeedSettings,
) -> tuple[TokenizedCorpus, PreTrainedTokenizerFast]:
    """Texts as arrays in memory, cut to the rows' length, and the tokenizer of their ids.

    Raises:
        InputError: there are too few of them for a batch.
    """
    assert settings.corpus is not None
    if is_tokenized(settings.corpus):
        whole, tokenizer = open_tokenized(settings.corpus)
        ends = whole.offsets[: settings.texts + 1]
        rows = [whole.ids[start:end] for start, end in pairwise(ends)]
    else:
        cleaned: list[str] = []
        for record in iter_records(settings.corpus):
            if text := clean_text(record.text):
                cleaned.append(text)
            if len(cleaned) == settings.texts:
                break
        tokenizer = train_tokenizer(cleaned, vocab_size=16_000).tokenizer
        rows = [
            np.asarray(encoding.ids, dtype=np.uint16)
            for encoding in tokenizer.backend_tokenizer.encode_batch_fast(
                cleaned, add_special_tokens=False
            )
            if encoding.ids
        ]
    if len(rows) < 1_000:
        raise InputError(f"expected 1,000 texts or more, found {len(rows)} in {settings.corpus}")
    rows = [row[: MAX_LENGTH - 2] for row in rows]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return TokenizedCorpus(ids=np.concatenate(rows), offsets=offsets, directory=Path()), tokenizer


def timed(
    step: Callable[[], int], device: torch.device, *, least: float = 2.0
) -> tuple[int, float, int]:
    """Take steps for at least so many seconds. Returns useful tokens, seconds and steps."""
    tokens = steps = 0
    wait(device)
    began = time.perf_counter()
    while time.perf_counter() - began < least:
        tokens += step()
        steps += 1
    # Once: to wait after each step would add the time in which the host prepares the next.
    wait(device)
    return tokens, time.perf_counter() - began, steps


def wait(device: torch.device) -> None:
    """Until a GPU has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def hardware_flops_per_token(arm: Ours, steps: int = 8) -> float:
    """Operations in matrix products for each useful token, over batches of several lengths.

    Compiled networks would hide them from the counter.
    """
    tokens = 0

    def take() -> None:
        nonlocal tokens
        tokens = sum(arm.step() for _ in range(steps))

    with torch.compiler.set_stance("force_eager"):
        return hardware_flops(take) / tokens


def where_time_goes(step: Callable[[], int], device: torch.device) -> dict[str, float]:
    """Share of a step's time by kind of operation; on a GPU the twelve longest kernels' shares."""
    if device.type == "cuda":
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
            step()
            wait(device)
        # Without the operations on the CPU, to which the same time is ascribed once more.
        averages = [e for e in recorded.key_averages() if e.device_type == DeviceType.CUDA]
        kernels = [(e.self_device_time_total, e.key) for e in averages]
        whole = sum(time for time, _ in kernels) or 1.0
        longest = sorted(kernels, reverse=True)[:12]
        return {name: round(time / whole, 3) for time, name in longest}
    kinds = {
        "matrix products": ("mm", "addmm", "bmm", "baddbmm"),
        "GELU": ("gelu",),
        "LayerNorm": ("layer_norm",),
        "softmax and cross entropy": ("softmax", "nll_loss", "cumsum", "searchsorted", "argmax"),
        "copies and casts": ("copy", "clone", "cat", "fill_", "zero_", "index"),
        "optimizer": ("adamw", "norm", "foreach"),
        "sums and additions": ("sum", "add", "mul", "div"),
    }
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        step()
    times: dict[str, float] = dict.fromkeys([*kinds, "other"], 0.0)
    for event in recorded.key_averages():
        name = event.key.removeprefix("aten::")
        kind = next((k for k, parts in kinds.items() if any(p in name for p in parts)), "other")
        times[kind] += event.self_cpu_time_total
    total = sum(times.values())
    return {kind: round(value / total, 3) for kind, value in times.items()}


def cost_by_corpus_size(
    settings: PretrainingSpeedSettings,
    corpus: TokenizedCorpus,
    tokenizer: PreTrainedTokenizerFast,
    device: torch.device,
) -> list[dict[str, float]]:
    """Seconds a token while the corpus grows a hundredfold, planning of the epoch included."""
    rows = []
    for size in (100_000, 1_000_000, 10_000_000):
        times = -(-size // corpus.num_tokens)
        ids = np.tile(np.asarray(corpus.ids), times)
        lengths = np.tile(corpus.lengths, times)
        count = int(np.searchsorted(np.cumsum(lengths), size)) + 1
        offsets = np.concatenate([[0], np.cumsum(lengths[:count])])
        part = TokenizedCorpus(ids=ids[: offsets[-1]], offsets=offsets, directory=Path())
        began = time.perf_counter()
        arm = Ours(settings, part, tokenizer, device, batching="length")
        arm.step()
        wait(device)
        planning = time.perf_counter() - began
        speeds = []
        for _ in range(3):
            tokens, seconds, _ = timed(arm.step, device)
            speeds.append(seconds / tokens)
        arm.batches.close()
        rows.append(
            {
                "corpus_tokens": int(part.num_tokens),
                "microseconds_a_token": round(statistics.median(speeds) * 1e6, 1),
                "seconds_to_first_step": round(planning, 2),
            }
        )
        print(rows[-1], flush=True)
    return rows


def memory_alone(name: str, settings: PretrainingSpeedSettings) -> float:
    """Peak memory of an arm in GiB, in a new process that takes ten steps of it and no more."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_take_ten, (name, settings))


def _take_ten(name: str, settings: PretrainingSpeedSettings) -> float:
    device = choose_device(settings.device)
    keep_freed_memory(device)
    arm = ARMS[name](settings, *tokenized_texts(settings), device)
    for _ in range(10):
        arm.step()
    if isinstance(arm, Ours):
        arm.batches.close()
    return peak_memory(device)


def peak_memory(device: torch.device) -> float:
    """GiB: of the GPU, or of this process."""
    if device.type == "cuda":
        return round(torch.cuda.max_memory_allocated() / 2**30, 2)
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return round(int(line.split()[1]) / 2**20, 2)
    return 0.0


if __name__ == "__main__":
    sys.exit(
        run_command(PretrainingSpeedSettings, main, "Time pre-training steps beside a plain loop.")
    )
