"""The training loop: batches in, steps, checkpoints, stop."""

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast

from corpora.errors import InputError
from pretrain.batches import iter_plans, make_batch, plan_epoch
from pretrain.checkpoint import Progress, save_state
from pretrain.devices import autocast
from pretrain.monitor import Monitor
from pretrain.networks import ElectraPair, forward_flops_per_token
from pretrain.objective import replaced_token_detection, unreachable_tokens
from pretrain.settings import PRESETS, PretrainSettings
from pretrain.tokenized import TokenizedCorpus


def make_optimizer(pair: ElectraPair, settings: PretrainSettings) -> torch.optim.AdamW:
    """AdamW (paper: beta 0.9 and 0.999, epsilon 1e-6), no decay on LayerNorm and bias."""
    decayed = [p for p in pair.parameters() if p.dim() >= 2]
    plain = [p for p in pair.parameters() if p.dim() < 2]
    return torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": settings.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ],
        lr=peak_learning_rate(settings),
        betas=(0.9, 0.999),
        eps=1e-6,
        fused=True,
    )


def peak_learning_rate(settings: PretrainSettings) -> float:
    """The flag's value, else the preset's."""
    return settings.learning_rate or PRESETS[settings.preset or "tiny"].learning_rate


def planned_steps(settings: PretrainSettings, corpus: TokenizedCorpus) -> int | None:
    """Steps the run will take; None when it is bounded by time."""
    if settings.max_minutes is not None:
        return None
    if settings.max_steps is not None:
        return settings.max_steps
    plan = plan_epoch(corpus.lengths, batch_tokens(settings), settings.seed, 0)
    return len(plan) * settings.epochs


def batch_tokens(settings: PretrainSettings) -> int:
    """The flag's value, else the preset's."""
    return settings.tokens_per_batch or PRESETS[settings.preset or "tiny"].tokens_per_batch


def learning_rate_at(fraction: float, peak: float, warmup_fraction: float) -> float:
    """Linear warm-up, then linear decay to zero.

    Args:
        fraction: how much of the run is done, 0 to 1.
    """
    if fraction < warmup_fraction:
        return peak * fraction / warmup_fraction
    return peak * (1 - fraction) / max(1e-9, 1 - warmup_fraction)


@contextmanager
def _stop_on_sigterm() -> Iterator[list[int]]:
    """Collect SIGTERM instead of dying: the loop saves and leaves after the current step."""
    received: list[int] = []
    try:
        before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    except ValueError:  # not in the main thread: the caller handles signals
        yield received
        return
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)


def train(
    pair: ElectraPair,
    optimizer: torch.optim.Optimizer,
    corpus: TokenizedCorpus,
    tokenizer: PreTrainedTokenizerFast,
    settings: PretrainSettings,
    progress: Progress,
    directory: Path,
    device: torch.device,
    monitor: Monitor,
) -> bool:
    """Train until the run's end, from where `progress` stands.

    Order, masks, samples and dropout depend on the seed and the step alone, so a resumed run
    draws what the uninterrupted one would have drawn.

    Returns:
        True when the run is complete, False when SIGTERM ended it after a checkpoint.

    Raises:
        InputError: the loss is not finite.
    """
    total_steps = planned_steps(settings, corpus)
    limit_seconds = (settings.max_minutes or 0) * 60
    peak = peak_learning_rate(settings)
    vocabulary = tokenizer.get_vocab()
    token_bias = unreachable_tokens(
        tokenizer.all_special_ids,
        [index for token, index in vocabulary.items() if token.startswith("[unused")],
        pair.generator.config.vocab_size,
    ).to(device)
    random = torch.Generator(device=device)
    plans = iter_plans(corpus.lengths, batch_tokens(settings), settings.seed, skip=progress.step)
    mean_length = float(corpus.lengths.mean()) + 2
    flops_per_token = _training_flops_per_token(pair, settings.mask_fraction, mean_length)

    def done_fraction() -> float:
        if total_steps is not None:
            return progress.step / total_steps if total_steps else 1.0
        return progress.seconds / limit_seconds

    pair.train()
    with _stop_on_sigterm() as received:
        while (fraction := done_fraction()) < 1:
            started = time.perf_counter()
            batch = make_batch(corpus, next(plans), tokenizer, device)
            step_seed = settings.seed * 1_000_003 + progress.step
            torch.manual_seed(step_seed)  # dropout
            random.manual_seed(step_seed + 1)  # masks and samples
            # A step's rate is that of its middle, so that neither first nor last is zero.
            share = 0.5 / total_steps if total_steps else 0.0
            rate = learning_rate_at(fraction + share, peak, settings.warmup_fraction)
            for group in optimizer.param_groups:
                group["lr"] = rate
            with autocast(device):
                result = replaced_token_detection(
                    pair,
                    batch.input_ids,
                    batch.attention_mask,
                    batch.maskable,
                    mask_id=tokenizer.mask_token_id,
                    mask_fraction=settings.mask_fraction,
                    discriminator_weight=settings.discriminator_weight,
                    token_bias=token_bias,
                    random=random,
                )
            result.loss.backward()
            torch.nn.utils.clip_grad_norm_(pair.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            tokens = int(batch.input_ids.numel())
            if batch.attention_mask is not None:
                tokens = int(batch.attention_mask.sum())
            progress.step += 1
            progress.tokens += tokens
            progress.flops += flops_per_token * tokens
            progress.seconds += time.perf_counter() - started
            fraction = done_fraction()
            monitor.add(
                result,
                step=progress.step,
                learning_rate=rate,
                fraction=fraction,
                left=progress.seconds * (1 - fraction) / max(fraction, 1e-9),
            )
            saving = received or (fraction < 1 and progress.step % settings.save_steps == 0)
            reporting = fraction >= 1 or progress.step % settings.log_steps == 0
            # Reading the loss waits for the device, so only when something depends on it: weights
            # that are no longer numbers must not become a checkpoint.
            if (saving or reporting) and not math.isfinite(float(result.loss.detach())):
                raise InputError(
                    f"the loss is no longer finite at step {progress.step:,} with learning rate "
                    f"{rate:.2e}; go on from the last checkpoint with --resume and half the "
                    "--learning-rate, or start again with it"
                )
            if saving:
                save_state(directory / "state", pair, optimizer, progress)
            if received:
                monitor.say(f"SIGTERM: saved at step {progress.step:,}; go on with --resume")
                return False
    return True


def _training_flops_per_token(pair: ElectraPair, mask_fraction: float, mean_length: float) -> float:
    """Forward and backward (three times forward) of both encoders and the generator's head."""
    generator, discriminator = pair.generator.config, pair.discriminator.config
    head = 2 * generator.embedding_size * (generator.vocab_size + generator.hidden_size)
    forward = (
        forward_flops_per_token(generator, mean_length)
        + forward_flops_per_token(discriminator, mean_length)
        + mask_fraction * head
    )
    return 3 * forward
