"""Does a discriminator find what it was trained to find: replaced tokens?

    python -m lab.benchmarks.quality.detection --data FOLDER

Film reviews of NSMC's test file, which no encoder here has read, are corrupted in three ways at the
same places: by samples of the checkpoint's own generator as in its training (ELECTRA, Clark et al.
2020, section 2: 15% of the tokens are masked, of which 85% are hidden by [MASK]), by words as
frequent as in these reviews, and by any entry of the vocabulary. Reported is, over all tokens, the
area under the ROC curve (AUC: a replaced token gets a higher logit than an original one, 50 is
chance), how many of the replaced ones are found when 5% of the original ones are suspected, and the
loss beside that of always saying the share of replaced tokens. Of the generator: how often its best
guess is right where it saw [MASK]. Mean and standard deviation over seeds of masks and samples.

The networks are stock: any pair of ELECTRA checkpoints that share a tokenizer can be named, one a
folder with `generator/` in it, or DISCRIMINATOR+GENERATOR. The generator of malmoi-medium is in the
repository's history: `git checkout 0b301063 -- checkpoints/malmoi-medium/generator`.
"""

import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import roc_auc_score, roc_curve
from transformers import AutoTokenizer, ElectraForMaskedLM, ElectraForPreTraining

from lab.benchmarks.data import NSMC_TEST, DataSettings
from lab.benchmarks.quality.tasks import TASKS
from malmoi.command_line import run_command
from malmoi.devices import choose_device
from malmoi.errors import InputError
from malmoi.files import file_sha256, write_at_once
from malmoi.model_folders import discriminator_folder
from malmoi.pretrain.data.masking import choose_masked
from malmoi.pretrain.model.networks import load_network

RESULTS = Path(__file__).parents[1] / "results" / "detection.json"
# Table 6 of the paper; its code hides 85% of the masked tokens, the others stay to be seen.
MASKED, HIDDEN = 0.15, 0.85
FALSE_ALARMS = 0.05
BATCH = 64
WAYS = ("own generator", "by frequency", "any entry")


@dataclass(kw_only=True)
class DetectionSettings(DataSettings):
    """Which checkpoints, how many texts."""

    models: str = "checkpoints/malmoi-medium"
    """Comma-separated checkpoints: folder with generator/, or DISCRIMINATOR+GENERATOR."""
    texts: int = 2_000
    """Reviews, the first of the test file."""
    seeds: int = 3
    """Draws of masks and samples."""
    max_length: int = 128
    """Tokens of a review that are read."""
    output: Path = RESULTS
    """JSON file of the results."""


@dataclass(frozen=True)
class Networks:
    """A pair and its tokenizer, on the device, in eval mode."""

    discriminator: ElectraForPreTraining
    generator: ElectraForMaskedLM
    tokenizer: Any


def main(settings: DetectionSettings) -> None:
    """Corrupt, ask, write the results."""
    if settings.texts < 1 or settings.seeds < 2:
        raise InputError(
            "expected --texts of at least 1 and --seeds of at least 2, for a spread, found "
            f"{settings.texts} and {settings.seeds}"
        )
    NSMC_TEST.find(settings.folder)
    comparison = TASKS["nsmc"]
    assert comparison.test is not None
    texts = [text for text in comparison.test(settings.folder).texts if text][: settings.texts]
    rows = [row for name in settings.models.split(",") for row in _measure(name, texts, settings)]
    _show(rows)
    record = {"texts": len(texts), "max_length": settings.max_length, "rows": rows}
    write_at_once(settings.output, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def _load(name: str) -> Networks:
    """The pair that is named.

    Raises:
        InputError: there is no generator, weights are damaged or missing, or the two have other
            vocabularies.
    """
    first, _, second = name.partition("+")
    own = Path(first)
    generator = Path(second) if second else own / "generator"
    discriminator = discriminator_folder(own)
    for place in (discriminator, generator):
        if not (place / "config.json").is_file():
            raise InputError(f"expected a network in {place}, found none; see --help")
    device = choose_device()
    pair = Networks(
        load_network(discriminator, ElectraForPreTraining).eval().to(device),
        load_network(generator, ElectraForMaskedLM).eval().to(device),
        AutoTokenizer.from_pretrained(discriminator),
    )
    sizes = [network.config.vocab_size for network in (pair.discriminator, pair.generator)]
    if sizes[0] != sizes[1]:
        raise InputError(f"expected two networks of one vocabulary in {name}, found {sizes}")
    return pair


def _measure(name: str, texts: list[str], settings: DetectionSettings) -> Iterator[dict[str, Any]]:
    """A row for each way of corrupting."""
    pair = _load(name)
    sha256 = file_sha256(discriminator_folder(Path(name.partition("+")[0])) / "model.safetensors")
    seeds: list[dict[str, dict[str, float]]] = []
    for seed in range(settings.seeds):
        print(f"{name}: seed {seed}", file=sys.stderr, flush=True)
        seeds.append(_of_seed(pair, texts, settings.max_length, seed))
    for way in WAYS:
        figures = {figure: [one[way][figure] for one in seeds] for figure in seeds[0][way]}
        means = {key: round(statistics.mean(values), 4) for key, values in figures.items()}
        spreads = {key: round(statistics.stdev(values), 4) for key, values in figures.items()}
        yield {
            "model": Path(name.partition("+")[0]).name,
            "weights_sha256": sha256,
            "way": way,
            "mean": means,
            "sd": spreads,
        }


def _of_seed(
    pair: Networks, texts: list[str], max_length: int, seed: int
) -> dict[str, dict[str, float]]:
    """Figures of each way of corrupting."""
    device = pair.discriminator.device
    draw = torch.Generator().manual_seed(seed)
    encoded = pair.tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
    encoded.sort(key=len)
    special = torch.tensor(pair.tokenizer.all_special_ids)
    words = torch.tensor([token for ids in encoded for token in ids])
    frequent = words[~torch.isin(words, special)]
    # Entries that no text has are filling, or not yet learnt by anybody.
    entries = torch.tensor(sorted(set(pair.tokenizer.get_vocab().values()) - set(special.tolist())))
    logits: dict[str, list[torch.Tensor]] = {way: [] for way in WAYS}
    replaced: dict[str, list[torch.Tensor]] = {way: [] for way in WAYS}
    guessed: list[torch.Tensor] = []
    for start in range(0, len(encoded), BATCH):
        batch = pair.tokenizer.pad(
            {"input_ids": encoded[start : start + BATCH]}, return_tensors="pt"
        )
        ids, real = batch["input_ids"], batch["attention_mask"].bool()
        masked = choose_masked(real & ~torch.isin(ids, special), MASKED, draw)
        hidden = masked & (torch.rand(ids.shape, generator=draw) < HIDDEN)
        inputs = ids.masked_fill(hidden, pair.tokenizer.mask_token_id)
        with torch.inference_mode():
            found = pair.generator(
                input_ids=inputs.to(device), attention_mask=batch["attention_mask"].to(device)
            ).logits[masked.to(device)]
        found = found.float().cpu()
        guessed.append((found.argmax(dim=1) == ids[masked])[hidden[masked]])
        count = len(found)
        samples = {
            "own generator": torch.multinomial(found.softmax(dim=1), 1, generator=draw)[:, 0],
            "by frequency": frequent[torch.randint(len(frequent), (count,), generator=draw)],
            "any entry": entries[torch.randint(len(entries), (count,), generator=draw)],
        }
        for way, tokens in samples.items():
            corrupted = ids.clone()
            corrupted[masked] = tokens
            with torch.inference_mode():
                answers = pair.discriminator(
                    input_ids=corrupted.to(device),
                    attention_mask=batch["attention_mask"].to(device),
                ).logits
            logits[way].append(answers.float().cpu()[real])
            replaced[way].append((corrupted != ids)[real])
    accuracy = float(torch.cat(guessed).float().mean())
    found_by = {way: _figures(torch.cat(logits[way]), torch.cat(replaced[way])) for way in WAYS}
    found_by["own generator"]["generator_accuracy"] = 100 * accuracy
    return found_by


def _figures(logits: torch.Tensor, replaced: torch.Tensor) -> dict[str, float]:
    """AUC, recall at few false alarms and share replaced in percent; the two losses."""
    truth, scores = replaced.numpy(), logits.double().numpy()
    false, true, _ = roc_curve(truth, scores)
    share = float(truth.mean())
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, replaced.float())
    return {
        "auc": 100 * float(roc_auc_score(truth, scores)),
        "recall": 100 * float(np.interp(FALSE_ALARMS, false, true)),
        "loss": float(loss),
        "base_rate_loss": float(-share * np.log(share) - (1 - share) * np.log1p(-share)),
        "replaced": 100 * share,
    }


def _show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        shown = "  ".join(
            f"{key} {value:.3f} ± {row['sd'][key]:.3f}"
            if "loss" in key
            else f"{key} {value:.1f} ± {row['sd'][key]:.1f}"
            for key, value in row["mean"].items()
        )
        print(f"{row['model']:24} {row['way']:14} {shown}")


if __name__ == "__main__":
    about = "Measure how well discriminators find replaced tokens: their generator's, and others."
    sys.exit(run_command(DetectionSettings, main, about))
