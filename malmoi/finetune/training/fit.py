"""Fine-tune a classifier: length-bucketed batches, bf16 products, float32 weights.

Legend: N texts, B texts in a batch, T tokens of the longest text in it, K labels.
"""

import math
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from malmoi.devices import attention_for, autocast, choose_device
from malmoi.errors import InputError
from malmoi.finetune.data.folds import split_off
from malmoi.finetune.evaluation.scores import choose_thresholds, score_task
from malmoi.finetune.plan import TrainingPlan, plan_training
from malmoi.finetune.settings import TrainSettings
from malmoi.finetune.training.encoders import output_layer
from malmoi.finetune.training.losses import balanced_weights, make_loss
from malmoi.finetune.training.subword_dropout import SubwordDropout, WordPieces, word_pieces_of
from malmoi.inference.batching import TokenizedTexts, tokenize_all
from malmoi.inference.first_token import logits_of
from malmoi.inference.tasks import Task, has_values, main_score
from malmoi.inference.torch_engine import DeviceTokens, predict_probabilities
from malmoi.schedule import warmup_then_decay
from malmoi.transformers_models import longest_input

# Batches whose texts are sorted by length together. With 32 texts in each, 93% of a memo batch is
# text and not padding (8: 81%); a text still meets others in every epoch. transformers'
# LengthGroupedSampler sorts up to 50 together.
BATCHES_IN_CHUNK = 32

# Reading a loss makes a GPU's host wait for it, so many are read at a time.
_STEPS_BETWEEN_CHECKS = 50

# Called after every step with (steps done, steps in all).
OnStep = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """N texts ready for training, shared by all folds.

    Attributes:
        task: what is learned.
        labels: K names; `malmoi.inference.tasks.REGRESSION_LABELS` for a regression.
        tokens: the texts.
        targets: [N] label ids, [N, K] 0 and 1 for `multi`, [N] values for a regression.
        strata: [N], see `malmoi.finetune.data.folds.strata_of`.
        groups: [N], see `malmoi.finetune.data.folds.near_duplicate_groups`, or None.
        word_pieces: of the tokenizer; only subword dropout needs them.
        keep_head: models begin with the head of a finished classifier.
    """

    task: Task
    labels: list[str]
    tokens: TokenizedTexts
    targets: np.ndarray
    strata: np.ndarray
    groups: np.ndarray | None = None
    word_pieces: WordPieces | None = None
    keep_head: bool = False


@dataclass(frozen=True, kw_only=True)
class TrainingOutcome:
    """What a training decided on the way.

    Attributes:
        epochs: that were run.
        best_epoch: whose weights the model has, from 1.
        dev_texts: how many texts were kept out of training to choose epoch and thresholds.
        thresholds: [K] float32 for `multi`, else None.
    """

    epochs: int
    best_epoch: int
    dev_texts: int
    thresholds: np.ndarray | None


def train_classifier(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    label_ids: Sequence[int],
    settings: TrainSettings,
    progress: OnStep | None = None,
    *,
    seed: int = 42,
) -> None:
    """Train `model` in place; it stays in float32, in evaluation mode, on the device used.

    The same weights, texts, settings, seed and machine give the same result.

    Args:
        model: sequence classifier of K labels.
        texts: cleaned texts.
        label_ids: 0 to K - 1, one a text.
        settings: what they leave open is decided by the model's width and the texts.
        progress: called with (steps done, steps in all) after every step.
        seed: of dropout and the order of texts.

    Raises:
        InputError: the loss became infinite or NaN.
    """
    training = plan_training(
        settings,
        hidden_size=hidden_size(model),
        longest_input=longest_input(model, tokenizer),
        texts=len(texts),
    )
    targets = np.asarray(label_ids, dtype=np.int64)
    data = TrainingData(
        task="single",
        labels=[str(name) for _, name in sorted((model.config.id2label or {}).items())],
        tokens=tokenize_all(tokenizer, texts, training.max_length),
        targets=targets,
        strata=targets,
        word_pieces=word_pieces_of(tokenizer) if training.subword_dropout else None,
    )
    train(model, data, np.arange(len(targets)), training, progress, seed=seed)


def hidden_size(model: PreTrainedModel) -> int:
    """The width of an encoder; 0 where its configuration does not say."""
    return int(getattr(model.config, "hidden_size", 0))


def train(
    model: PreTrainedModel,
    data: TrainingData,
    places: np.ndarray,
    training: TrainingPlan,
    progress: OnStep | None = None,
    *,
    seed: int = 42,
    device: torch.device | None = None,
) -> TrainingOutcome:
    """Train `model` in place on the texts at `places`, as `train_classifier`.

    Args:
        model: sequence classifier.
        data: all texts, of which only those at `places` are looked at.
        places: rising, int64.
        training: every number decided.
        progress: called with (steps done, steps in all) after every step; early stopping does
            fewer than all.
        seed: of dropout, the order of texts and what is kept out.
        device: a GPU if there is one, when None.

    Raises:
        InputError: the loss became infinite or NaN, or there are too few texts to keep some out.
        ValueError: subword dropout without `data.word_pieces`.
    """
    device = device or choose_device()
    places, dev = _keep_out(data, places, training, seed)
    data, unit = _standardized(model, data, places)
    set_seed(seed)
    model.train().to(device)
    model.set_attn_implementation(attention_for(device))
    if training.gradient_checkpointing:
        model.activation_checkpointing_enable({"use_reentrant": False})
    tokens = DeviceTokens(data.tokens, device)
    # A long text is learnt from its beginning, and predicted in windows.
    learnt = replace(data, tokens=data.tokens.beginnings())
    with deterministic(device):
        loop = _Loop(model, learnt, places, training, seed, device)
        best = _Best(training.patience)
        epoch = 0
        for epoch in range(1, training.epochs + 1):
            loop.run_epoch(progress)
            if training.early_stopping_fraction:
                found = predict_probabilities(model, tokens, dev, data.task, device)
                targets = data.targets[dev]
                multi = data.task == "multi"
                thresholds = choose_thresholds(targets, found) if multi else None
                scores = score_task(data.task, targets, found, data.labels, thresholds)
                if best.is_enough(scores[main_score(data.task)], epoch, model):
                    break
        best.restore(model)
    _rescale(model, *unit)
    if training.gradient_checkpointing:
        model.activation_checkpointing_disable()
    model.eval()
    thresholds = None
    if data.task == "multi":
        found = predict_probabilities(model, tokens, dev, data.task, device)
        thresholds = choose_thresholds(data.targets[dev], found)
    best_epoch = best.epoch or epoch
    return TrainingOutcome(
        epochs=epoch, best_epoch=best_epoch, dev_texts=len(dev), thresholds=thresholds
    )


def _standardized(
    model: PreTrainedModel, data: TrainingData, places: np.ndarray
) -> tuple[TrainingData, tuple[float, float]]:
    """Values with mean 0 and deviation 1 over `places`: 80 points are learnt as fast as 4 stars.

    Returns:
        The data, and scale and shift that give values in their own unit again; 1 and 0 of labels.
    """
    if not has_values(data.task) or getattr(output_layer(model), "bias", None) is None:
        return data, (1.0, 0.0)
    values = data.targets[places]
    shift, scale = float(values.mean()), float(values.std()) or 1.0
    if data.keep_head:
        _rescale(model, 1 / scale, -shift / scale)
    return replace(data, targets=(data.targets - shift) / np.float32(scale)), (scale, shift)


def _rescale(model: PreTrainedModel, scale: float, shift: float) -> None:
    """Multiply all outputs and add to them."""
    layer = output_layer(model)
    if layer is None or (scale, shift) == (1.0, 0.0):
        return
    with torch.no_grad():
        layer.weight.mul_(scale)
        layer.bias.mul_(scale).add_(shift)


def _keep_out(
    data: TrainingData, places: np.ndarray, training: TrainingPlan, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Places to train on, and places that choose epoch and thresholds."""
    fraction = training.dev_fraction
    if not fraction:
        return places, places[:0]
    kept, dev = split_off(data.strata, places, fraction, seed, data.groups)
    if not len(dev) or not len(kept):
        way = "" if data.task == "multi" else " or leave out training.early_stopping_fraction"
        raise InputError(
            "expected enough texts to keep {fraction:g} of them out of training, found {texts}; "
            "add texts{way}",
            fraction=fraction,
            texts=len(places),
            way=way,
        )
    return kept, dev


class _Best:
    """The weights of the best epoch, and when to stop looking for a better one."""

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._score = -math.inf
        self._weights: dict[str, torch.Tensor] = {}
        self.epoch = 0

    def is_enough(self, score: float, epoch: int, model: PreTrainedModel) -> bool:
        """Note the score of an epoch; whether to stop. Of equal scores the first counts."""
        if score > self._score:
            self._score, self.epoch = score, epoch
            self._weights = {
                name: value.detach().to("cpu", copy=True)
                for name, value in model.state_dict().items()
            }
        return epoch - self.epoch >= self._patience

    def restore(self, model: PreTrainedModel) -> None:
        """Give the model the best weights, if any were noted."""
        if self._weights:
            model.load_state_dict(self._weights)


class _Loop:
    """One training: optimizer, schedule and order of texts."""

    def __init__(
        self,
        model: PreTrainedModel,
        data: TrainingData,
        places: np.ndarray,
        training: TrainingPlan,
        seed: int,
        device: torch.device,
    ) -> None:
        self._logits, self._places = logits_of(model), places
        self._tokens = DeviceTokens(data.tokens, device)
        self._training, self._device = training, device
        self._data = data
        self._anew: SubwordDropout | None = None
        if training.subword_dropout:
            if data.word_pieces is None:
                raise ValueError("subword dropout needs TrainingData.word_pieces")
            self._anew = SubwordDropout(data.word_pieces, training.subword_dropout)
            self._draw = random.Random(seed)
        self._targets = torch.from_numpy(np.ascontiguousarray(data.targets)).to(device)
        self._parameters = [value for value in model.parameters() if value.requires_grad]
        weights = None
        if training.class_weights == "balanced":
            targets = data.targets[places]
            weights = balanced_weights(data.task, targets, len(data.labels)).to(device)
        self._loss = make_loss(
            data.task,
            weights=weights,
            focal_gamma=training.focal_gamma,
            label_smoothing=training.label_smoothing,
        )
        self._steps = steps_in(len(places), training)
        self._step = 0
        self._optimizer = torch.optim.AdamW(parameter_groups(model, training), fused=True)
        warmup = round(self._steps * training.warmup_fraction)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimizer, lambda step: warmup_then_decay(step, self._steps, warmup, lead=1)
        )
        self._order = torch.Generator().manual_seed(seed)
        self._lengths = data.tokens.lengths[places].tolist()
        self._unread: list[torch.Tensor] = []

    def run_epoch(self, progress: OnStep | None) -> None:
        """Pass over all texts once."""
        if self._anew is not None:
            cut = self._anew.cut_anew(
                self._data.tokens, self._places, self._training.max_length, self._draw
            )
            self._tokens = DeviceTokens(cut, self._device)
            self._lengths = cut.lengths[self._places].tolist()
        for batch in shuffled_batches(self._lengths, self._training.batch_size, self._order):
            chosen = self._places[batch]
            inputs = self._tokens.batch(chosen)
            with autocast(self._device):
                logits = self._logits(**inputs)  # [B, K]
            targets = self._targets[torch.from_numpy(chosen).to(self._device)]
            loss = self._loss(logits.float(), targets)
            loss.backward()
            # ELECTRA, BERT and Hugging Face's examples all clip at 1.
            nn.utils.clip_grad_norm_(self._parameters, 1.0, foreach=True)
            self._optimizer.step()
            self._schedule.step()
            self._optimizer.zero_grad(set_to_none=True)
            self._step += 1
            self._unread.append(loss.detach())
            if len(self._unread) == _STEPS_BETWEEN_CHECKS:
                self._check_losses()
            if progress is not None:
                progress(self._step, self._steps)
        self._check_losses()

    def _check_losses(self) -> None:
        if not self._unread:
            return
        losses = torch.stack(self._unread).tolist()
        first = self._step - len(losses) + 1
        self._unread.clear()
        for step, loss in enumerate(losses, first):
            if not math.isfinite(loss):
                raise InputError(
                    "the loss became {loss} at step {step} of {steps} with learning rate "
                    "{learning_rate:g}; use a lower --learning-rate",
                    loss=loss,
                    step=step,
                    steps=self._steps,
                    learning_rate=self._training.learning_rate,
                )


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Kernels that give the same result every time; on a CPU all of ours do already."""
    if device.type != "cuda":
        yield
        return
    # cuBLAS asks for it, before its first call.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def steps_in(texts: int, training: TrainingPlan) -> int:
    """Optimizer steps that training on so many texts takes."""
    return training.epochs * math.ceil(texts / training.batch_size)


def shuffled_batches(
    lengths: Sequence[int], batch_size: int, generator: torch.Generator
) -> Iterator[list[int]]:
    """All places in a new random order, texts of like length together, batches in random order.

    Sorting happens inside shuffled chunks of `BATCHES_IN_CHUNK` batches, so that batches differ
    from epoch to epoch; only the last chunk may end in a smaller batch.
    """
    order = torch.randperm(len(lengths), generator=generator).tolist()
    size = batch_size * BATCHES_IN_CHUNK
    batches: list[list[int]] = []
    for first in range(0, len(order), size):
        chunk = sorted(order[first : first + size], key=lengths.__getitem__)
        batches += [chunk[start : start + batch_size] for start in range(0, len(chunk), batch_size)]
    for place in torch.randperm(len(batches), generator=generator).tolist():
        yield batches[place]


def parameter_groups(model: PreTrainedModel, training: TrainingPlan) -> list[dict[str, object]]:
    """AdamW groups: learning rate by depth, weight decay for matrices only.

    As in ELECTRA's optimizer (`finetune/optimization.py`), with n layers: the head has the full
    rate, layer l (from 0) decay^(n + 1 - l) of it, embeddings decay^(n + 2).
    """
    layers = int(getattr(model.config, "num_hidden_layers", 0))
    prefix = f"{model.base_model_prefix}."
    rate, decay = training.learning_rate, training.layer_decay
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        layer = re.search(r"\.layers?\.(\d+)\.", name)
        if not name.startswith(prefix):
            below = 0
        elif layer is None:
            below = layers + 2
        else:
            below = layers + 1 - int(layer[1])
        # LayerNorm weights and all biases are vectors.
        groups.setdefault((below, parameter.ndim > 1), []).append(parameter)
    return [
        {
            "params": parameters,
            "lr": rate * decay**below,
            "weight_decay": training.weight_decay if matrices else 0.0,
        }
        for (below, matrices), parameters in groups.items()
    ]
