"""Fine-tune a classifier: length-bucketed batches, bf16 products, float32 weights.

Legend: B texts in a batch, T tokens of the longest text in it, K labels.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from corpora.errors import InputError
from finetune.batches import pad_batch, tokenize
from finetune.model_files import longest_input
from pretrain.devices import attention_for, autocast, choose_device

# Batches whose texts are sorted by length together. Assumption: enough of them to save padding,
# few enough that a text meets other texts in every epoch.
BATCHES_IN_CHUNK = 8

Progress = Callable[[int, int], None]


@dataclass(kw_only=True)
class TrainSettings:
    """How to fine-tune; the defaults follow ELECTRA and KcELECTRA."""

    epochs: int = 10
    """Passes over the training texts (ELECTRA paper, Appendix B: 10 for its small data sets)."""
    learning_rate: float | None = None
    """Highest learning rate; by default 3e-4 for encoders up to 256 wide (ELECTRA paper,
    Appendix B, small) and 5e-5 for wider ones (KcELECTRA's fine-tuning of base)."""
    layer_decay: float | None = None
    """Learning rate of a layer as a fraction of that of the layer above; by default 0.8 up to 256
    wide (ELECTRA paper, Appendix B), else 1; 1 for random weights, which have nothing to keep."""
    warmup_fraction: float = 0.1
    """Fraction of the steps in which the learning rate rises; it then falls linearly to 0."""
    weight_decay: float = 0.01
    """AdamW's; not applied to LayerNorm and biases."""
    batch_size: int = 32
    """Texts in one optimizer step."""
    max_length: int = 128
    """Tokens of a text that are read, [CLS] and [SEP] included; what exceeds them is cut off."""
    dropout: float = 0.1
    """Fraction dropped in the encoder and before the classification head."""
    seed: int = 42
    """Of folds, new weights, dropout and the order of texts."""

    def check(self) -> None:
        """Refuse values that cannot train.

        Raises:
            InputError: naming the first bad value and what was expected.
        """
        bounds: list[tuple[str, bool, str]] = [
            ("epochs", self.epochs >= 1, "at least 1"),
            ("learning_rate", _fraction(self.learning_rate), "above 0 and at most 1"),
            ("layer_decay", _fraction(self.layer_decay), "above 0 and at most 1"),
            ("warmup_fraction", 0 <= self.warmup_fraction < 1, "from 0 to below 1"),
            ("weight_decay", 0 <= self.weight_decay < math.inf, "0 or more"),
            ("batch_size", self.batch_size >= 1, "at least 1"),
            ("max_length", self.max_length >= 3, "at least 3 tokens"),
            ("dropout", 0 <= self.dropout < 1, "from 0 to below 1"),
            ("seed", 0 <= self.seed < 2**32, "from 0 to 4294967295"),
        ]
        for name, good, expected in bounds:
            if not good:
                flag = "--" + name.replace("_", "-")
                raise InputError(f"expected {flag} {expected}, found {getattr(self, name)}")

    def resolved(self, hidden_size: int, *, random_weights: bool = False) -> "TrainSettings":
        """These settings with the values that depend on the encoder's width filled in."""
        small = hidden_size <= 256
        learning_rate, layer_decay = self.learning_rate, self.layer_decay
        if learning_rate is None:
            learning_rate = 3e-4 if small else 5e-5
        if layer_decay is None:
            layer_decay = 0.8 if small and not random_weights else 1.0
        return replace(self, learning_rate=learning_rate, layer_decay=layer_decay)


def train_classifier(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    label_ids: Sequence[int],
    settings: TrainSettings,
    progress: Progress | None = None,
) -> None:
    """Train `model` in place; it stays in float32, in evaluation mode, on the device used.

    The same weights, texts, settings and machine give the same result.

    Args:
        model: sequence classifier of K labels.
        texts: cleaned texts.
        label_ids: 0 to K - 1, one a text.
        settings: `resolved` or not.
        progress: called with (steps done, steps in all) after every step.

    Raises:
        InputError: the loss became infinite or NaN.
    """
    settings = settings.resolved(int(getattr(model.config, "hidden_size", 0)))
    device = choose_device()
    set_seed(settings.seed)
    model.train().to(device)
    model.set_attn_implementation(attention_for(device))
    max_length = min(settings.max_length, longest_input(model, tokenizer))
    ids = tokenize(tokenizer, texts, max_length)
    targets = torch.tensor(label_ids)
    pad = int(tokenizer.pad_token_id)
    groups = parameter_groups(model, settings)
    optimizer = torch.optim.AdamW(groups, fused=True)
    steps = steps_in(len(texts), settings)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rate_at(step, steps, settings.warmup_fraction)
    )
    order = torch.Generator().manual_seed(settings.seed)
    lengths = [len(row) for row in ids]
    step = 0
    for _ in range(settings.epochs):
        for places in shuffled_batches(lengths, settings.batch_size, order):
            inputs = pad_batch([ids[place] for place in places], pad, device)
            with autocast(device):
                logits = model(**inputs).logits  # [B, K]
            loss = functional.cross_entropy(logits.float(), targets[places].to(device))
            loss.backward()
            step += 1
            if not math.isfinite(float(loss.detach())):
                raise InputError(
                    f"the loss became {float(loss.detach())} at step {step} of {steps} with "
                    f"learning rate {settings.learning_rate:g}; use a lower --learning-rate"
                )
            # ELECTRA, BERT and Hugging Face's examples all clip at 1.
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad(set_to_none=True)
            if progress is not None:
                progress(step, steps)
    model.eval()


def steps_in(texts: int, settings: TrainSettings) -> int:
    """Optimizer steps that training on so many texts takes."""
    return settings.epochs * math.ceil(texts / settings.batch_size)


def rate_at(step: int, steps: int, warmup_fraction: float) -> float:
    """Fraction of the highest learning rate at `step` (from 0): up linearly, then down to 0."""
    warmup = round(steps * warmup_fraction)
    if step < warmup:
        return (step + 1) / warmup
    return max(0.0, (steps - step) / max(1, steps - warmup))


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


def parameter_groups(model: PreTrainedModel, settings: TrainSettings) -> list[dict[str, object]]:
    """AdamW groups: learning rate by depth, weight decay for matrices only.

    As in ELECTRA's optimizer (`finetune/optimization.py`), with n layers: the head has the full
    rate, layer l (from 0) decay^(n + 1 - l) of it, embeddings decay^(n + 2).
    """
    layers = int(getattr(model.config, "num_hidden_layers", 0))
    prefix = f"{model.base_model_prefix}."
    rate, decay = float(settings.learning_rate or 0), float(settings.layer_decay or 1)
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
            "weight_decay": settings.weight_decay if matrices else 0.0,
        }
        for (below, matrices), parameters in groups.items()
    ]


def _fraction(value: float | None) -> bool:
    return value is None or 0 < value <= 1
