"""A classifier of film ratings: what the released classifier of reviews begins as."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from malmoi.files import directory_at_once
from malmoi.finetune.settings import TrainSettings
from malmoi.finetune.training.encoders import load_encoder_tokenizer, load_for_classification
from malmoi.finetune.training.fit import train_classifier
from malmoi.inference.learnt_texts import text_keys, write_learnt
from malmoi.transformers_models import save_model

# Texts of each label, and settings: 50,000 under malmoi-small, 25,000 under malmoi-medium were the
# only ones tried (lab/log).
MOST_PER_LABEL = 25_000
SETTINGS = TrainSettings(epochs=1, learning_rate=3e-4, layer_decay=1.0)
SEED = 42
# What it has learnt, beside its weights.
RECORD = "ratings.json"
_STEPS_BETWEEN_LINES = 500


def learn_ratings(
    encoder: Path, labels: Sequence[str], rows: Sequence[tuple[str, str]], folder: Path
) -> None:
    """Fine-tune the encoder on rated reviews and write the classifier, whole or not at all.

    Args:
        labels: in the order of their ids.
        rows: texts, cleaned, and labels.
        folder: new.

    Raises:
        InputError: there are no whole weights, or the loss became infinite or NaN.
    """
    began = time.perf_counter()
    tokenizer = load_encoder_tokenizer(encoder)
    model = load_for_classification(
        encoder, list(labels), dropout=SETTINGS.dropout, seed=SEED, tokenizer=tokenizer
    )

    def progress(done: int, steps: int) -> None:
        if done % _STEPS_BETWEEN_LINES == 0 or done == steps:
            print(f"ratings: step {done:,} of {steps:,}", flush=True)

    train_classifier(
        model,
        tokenizer,
        [text for text, _ in rows],
        [labels.index(label) for _, label in rows],
        SETTINGS,
        progress,
        seed=SEED,
    )
    learnt = asdict(SETTINGS) | {
        "seed": SEED,
        "texts": len(rows),
        "seconds": round(time.perf_counter() - began, 3),
    }
    with directory_at_once(folder) as scratch:
        # As it came: training has told the other to cut texts.
        save_model(model, load_encoder_tokenizer(encoder), scratch)
        write_learnt(scratch, text_keys([text for text, _ in rows]))
        (scratch / RECORD).write_text(json.dumps(learnt) + "\n", encoding="utf-8")
