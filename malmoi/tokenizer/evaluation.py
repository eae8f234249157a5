"""Tokenizers side by side: what is measured, as a table, as JSON and as a plot."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from malmoi.errors import InputError
from malmoi.text.cleaning.cleaner import clean_text
from malmoi.text.morphemes import analyser_version
from malmoi.tokenizer.measures import Measures, cut_by_kiwi, load_any_tokenizer, measure
from malmoi.tokenizer.sampling import sample_evenly


@dataclass(frozen=True, kw_only=True)
class TokenizerRow:
    """One tokenizer on one corpus."""

    tokenizer: str
    corpus: str
    measures: Measures


def compare(
    tokenizers: Mapping[str, Path],
    corpora: Mapping[str, Iterable[str]],
    *,
    max_sample_bytes: int,
    morpheme_texts: int,
    seed: int,
) -> tuple[list[TokenizerRow], dict[str, object]]:
    """Measure every tokenizer on every corpus.

    Args:
        tokenizers: names, and directories or vocabulary files.
        corpora: names and raw texts; they are cleaned, empty ones left out.

    Returns:
        The rows, corpus by corpus, and what they were measured on, for the JSON.

    Raises:
        InputError: a tokenizer cannot be read, or a corpus has no text.
    """
    # For one thread: read by tokenizers at every call.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    loaded = {name: load_any_tokenizer(path) for name, path in tokenizers.items()}
    rows: list[TokenizerRow] = []
    described: dict[str, object] = {}
    for corpus, texts in corpora.items():
        clean = (clean_text(text) for text in texts)
        sample = sample_evenly(
            (text for text in clean if text), max_bytes=max_sample_bytes, seed=seed
        )
        if not sample.texts:
            raise InputError("expected texts to measure on, found none in {corpus}", corpus=corpus)
        # Some of them, evenly spread.
        step = max(1, -(-len(sample.texts) // max(1, morpheme_texts)))
        cut = cut_by_kiwi(sample.texts[::step])
        described[corpus] = {
            "texts": len(sample.texts),
            "of_texts": sample.read,
            "sha256": sample.sha256,
            "morpheme_texts": len(cut.texts),
            "analyser_failed_texts": cut.failed,
        }
        rows += [
            TokenizerRow(
                tokenizer=name, corpus=corpus, measures=measure(tokenizer, sample.texts, cut)
            )
            for name, tokenizer in loaded.items()
        ]
    return rows, {"corpora": described, "analyser": analyser_version(), "seed": seed}


_COLUMNS = {
    "entries": ("entries", "{:,}"),
    "unknown_tokens": ("unknown", "{:.3%}"),
    "unknown_characters": ("of chars", "{:.3%}"),
    "tokens_per_character": ("tok/char", "{:.4f}"),
    "tokens_per_eojeol": ("tok/eojeol", "{:.3f}"),
    "morpheme_f1": ("morph. F1", "{:.3f}"),
    "entries_used": ("used", "{:.1%}"),
    "texts_per_second": ("texts/s", "{:,.0f}"),
}


def format_table(rows: list[TokenizerRow]) -> str:
    """The rows as lines of aligned columns, one block a corpus."""
    width = max(len(row.tokenizer) for row in rows)
    lines: list[str] = []
    for corpus in dict.fromkeys(row.corpus for row in rows):
        titles = "".join(f"{title:>11}" for title, _ in _COLUMNS.values())
        lines += ["", corpus, f"{'':{width}}{titles}"]
        for row in rows:
            if row.corpus == corpus:
                values = asdict(row.measures)
                cells = [form.format(values[key]) for key, (_, form) in _COLUMNS.items()]
                lines.append(f"{row.tokenizer:{width}}{''.join(f'{cell:>11}' for cell in cells)}")
    return "\n".join(lines[1:])


def as_json(rows: list[TokenizerRow], about: dict[str, object]) -> str:
    """What was measured, and on what."""
    table = [
        {"tokenizer": row.tokenizer, "corpus": row.corpus}
        | {key: round(value, 6) for key, value in asdict(row.measures).items()}
        for row in rows
    ]
    return json.dumps(about | {"rows": table}, ensure_ascii=False, indent=1) + "\n"


def can_plot() -> bool:
    """Whether the optional packages that draw are installed."""
    return all(find_spec(name) is not None for name in ("matplotlib", "koreanize_matplotlib"))


def write_plot(rows: list[TokenizerRow], path: Path) -> None:
    """Tokens per character, one panel a corpus, shortest first."""
    import koreanize_matplotlib  # noqa: F401  # its import registers a font with Hangul
    from matplotlib.figure import Figure

    corpora = list(dict.fromkeys(row.corpus for row in rows))
    height = 0.35 * len(rows) + 0.9 * len(corpora)
    figure = Figure(figsize=(7, height), layout="constrained")
    panels = figure.subplots(len(corpora), 1, squeeze=False)[:, 0]
    for panel, corpus in zip(panels, corpora, strict=True):
        shown = sorted(
            (row for row in rows if row.corpus == corpus),
            key=lambda row: -row.measures.tokens_per_character,
        )
        values = [row.measures.tokens_per_character for row in shown]
        bars = panel.barh([row.tokenizer for row in shown], values, color="#4c78a8")
        labels = [
            f"{row.measures.tokens_per_character:.3f}  ([UNK] {row.measures.unknown_tokens:.3%})"
            for row in shown
        ]
        panel.bar_label(bars, labels, padding=3, fontsize=8)
        panel.set_xlim(0, max(values) * 1.35)
        panel.set_title(corpus, loc="left", fontsize=10)
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("tokens per character (spaces not counted)")
    scratch = path.with_name(f".{path.stem}.tmp.png")
    try:
        figure.savefig(scratch, dpi=150)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
