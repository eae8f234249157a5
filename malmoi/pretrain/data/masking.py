"""Which tokens the generator has to guess, and what stands in their place.

Shapes: [B, L] = sequences, tokens; V vocabulary entries.
Nothing here waits for the device: no value is read on the host and no shape depends on data. All
draws come from the `torch.Generator` given, which lives on the tensors' device, and the number of
draws depends on shapes only: the same state gives the same result.
"""

import math
import re

import torch

from malmoi.errors import InputError
from malmoi.pretrain.config.objective import Masking

# Joshi et al. 2020 (SpanBERT), section 3.1: lengths are geometric and at most 10, mean 3.8.
SPAN_PROBABILITY = 0.2
MAX_SPAN = 10
# The first pass over the words stops at one that does not fit; each later one fills up with words
# that do. The fourth added 0.05% of the masked tokens, a fifth 0.003% (measured, simulated words).
_WORD_PASSES = 4
# Positions of weight 0 come last, after all others; the draw divided by it is still finite.
_LEAST_WEIGHT = 1e-30
_SPACE = "\u2581"
# [CLS], [unused3], <s>, </s>, but not sentencepiece's bytes such as <0xEA>.
_SPECIAL_TOKEN = re.compile(r"\[(?:[A-Z]+|unused\d+)\]|<(?!0x)/?\w+>")


def choose_masked(
    maskable: torch.Tensor,
    fraction: float,
    random: torch.Generator,
    *,
    strategy: Masking = "token",
    starts_word: torch.Tensor | None = None,
    weights: torch.Tensor | None = None,
) -> torch.Tensor:
    """Draw the positions to guess: `fraction` of each sequence's maskable ones.

    A row's budget is its number of maskable positions times `fraction`, rounded, at least one
    where there is one. No strategy masks more than the budget; token, span and rare mask exactly
    that many.

    - token: uniformly without replacement.
    - word: whole words, as in BERT's whole-word code; see `_choose_words`.
    - span: spans of geometric length (SpanBERT); see `_choose_spans`. Lengths are in words if
      `starts_word` is given (the paper), else in tokens.
    - rare: without replacement, each next position with probability proportional to its weight
      among those left.

    Args:
        maskable: bool [B, L]; False at [CLS], [SEP] and padding.
        fraction: of each sequence's maskable tokens, above 0 and at most 1.
        random: source of the random draws, on the same device.
        starts_word: bool [B, L], True at the first token of a word: `word_starts` of the
            vocabulary at the input ids. A maskable position after one that is not starts a word
            in any case. Needed by word.
        weights: float [B, L], not negative: `rarity_weights` of the vocabulary at the input ids.
            Needed by rare.

    Returns:
        bool [B, L], True at the positions to guess; never outside `maskable`.

    Raises:
        InputError: unknown strategy, or what the strategy needs is not given.
    """
    counts = maskable.sum(dim=1, keepdim=True)
    # Double precision: 0.15 x 30 rounds as it does in Python.
    budget = (counts.double() * fraction).round().long().clamp(min=1).minimum(counts)
    if strategy == "token":
        masked = _ranks(_uniform(maskable, random), maskable) < budget
    elif strategy == "word":
        words = _needed(starts_word, "starts_word with strategy word", "word_starts(vocabulary)")
        masked = _choose_words(maskable, _first_tokens(maskable, words), budget, random)
    elif strategy == "span":
        first = maskable if starts_word is None else _first_tokens(maskable, starts_word)
        masked = _choose_spans(maskable, first, budget, random)
    elif strategy == "rare":
        rarity = _needed(weights, "weights with strategy rare", "rarity_weights(counts)")
        # An exponential race: the position whose exponential time of rate `weight` is shortest is
        # drawn first, which is sampling in proportion to the weights without replacement.
        times = -torch.log1p(-_uniform(maskable, random))
        masked = _ranks(times / rarity.float().clamp(min=_LEAST_WEIGHT), maskable) < budget
    else:
        raise InputError(
            "expected strategy token, word, span or rare, found {strategy}", strategy=strategy
        )
    return masked & maskable


def _needed(value: torch.Tensor | None, what: str, table: str) -> torch.Tensor:
    if value is None:
        raise InputError(
            "expected {what}, found none; give {table}[input_ids]", what=what, table=table
        )
    return value


def _uniform(like: torch.Tensor, random: torch.Generator) -> torch.Tensor:
    return torch.rand(like.shape, generator=random, device=like.device)


def _ranks(keys: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
    """Rank of each key in its row, smallest first; those not `present` come last."""
    return keys.masked_fill(~present, math.inf).argsort(dim=1).argsort(dim=1)


def _first_tokens(maskable: torch.Tensor, starts_word: torch.Tensor) -> torch.Tensor:
    """bool [B, L]: a long text is cut anywhere, so a row may begin inside a word."""
    after_gap = maskable.clone()
    after_gap[:, 1:] &= ~maskable[:, :-1]
    return (maskable & starts_word) | after_gap


def _shuffle_units(
    units: torch.Tensor, maskable: torch.Tensor, random: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Put the units (words, spans) of each row in uniformly random order.

    Args:
        units: int64 [B, L], number of the unit that each position belongs to, rising from 0.
        maskable: bool [B, L], the positions that count.

    Returns:
        turns: int64 [B, L], place of a position's unit in the order, from 0.
        sizes: int64 [B, L], tokens of the units, in that order; 0 after the last.
        places: int64 [B, L], place of a position itself when the units are laid end to end in
            that order.
    """
    unit_sizes = torch.zeros_like(units).scatter_add(1, units, maskable.long())
    turns_of_units = _ranks(_uniform(maskable, random), unit_sizes > 0)
    sizes = torch.zeros_like(units).scatter(1, turns_of_units, unit_sizes)
    turns = turns_of_units.gather(1, units)
    offsets = maskable.long().cumsum(1) - 1 - (unit_sizes.cumsum(1) - unit_sizes).gather(1, units)
    places = (sizes.cumsum(1) - sizes).gather(1, turns) + offsets
    return turns, sizes, places


def _choose_words(
    maskable: torch.Tensor, first: torch.Tensor, budget: torch.Tensor, random: torch.Generator
) -> torch.Tensor:
    """Whole words in uniformly random order; one that no longer fits is passed over for the next
    that does.

    So short words are masked more often than long ones, most of all in short texts: at 0.15, of
    words of 1, 2, 3 and 4 tokens 27%, 16%, 7% and 4% of the sample comments' (WordPiece, 19 tokens
    a text; measured). Where every word is longer than the budget, the first tokens of one are
    masked, up to it. Up to 3% of the budget stays unused (measured).
    """
    words = (first.long().cumsum(1) - 1).clamp(min=0)
    turns, sizes, places = _shuffle_units(words, maskable, random)
    taken = torch.zeros_like(maskable)
    left = budget
    for _ in range(_WORD_PASSES):
        fits = (sizes > 0) & ~taken & (sizes <= left)
        fitting = sizes * fits
        new = fits & (fitting.cumsum(1) <= left)
        taken = taken | new
        left = left - (fitting * new).sum(dim=1, keepdim=True)
    too_long = ~taken.any(dim=1, keepdim=True)
    return taken.gather(1, turns) | (too_long & (places < budget))


def _choose_spans(
    maskable: torch.Tensor, first: torch.Tensor, budget: torch.Tensor, random: torch.Generator
) -> torch.Tensor:
    """The row is cut into spans of geometric length (Joshi et al. 2020, section 3.1), and spans
    are taken in uniformly random order; the last is cut at the budget, as in SpanBERT's code."""
    # The row is taken as a ring that is cut into spans from a random token or word on. Cut from
    # its beginning, the first tokens would always begin a span and be masked more often.
    num_columns = maskable.shape[1]
    turned = _uniform(maskable, random).masked_fill(~first, -1.0).argmax(dim=1, keepdim=True)
    columns = (torch.arange(num_columns, device=maskable.device) + turned) % num_columns
    ring = maskable.gather(1, columns)
    pieces = (first.gather(1, columns).long().cumsum(1) - 1).clamp(min=0)
    ends = draw_span_lengths(maskable.shape, random, maskable.device).cumsum(1)
    # ends[i] pieces are over when span i + 1 begins; those beyond the row go to a spare column.
    begins = torch.zeros_like(ends[:, :1]).expand(-1, num_columns + 1)
    begins = begins.scatter(1, ends.clamp(max=num_columns), 1)[:, :num_columns]
    spans = begins.cumsum(1).gather(1, pieces)
    _, _, places = _shuffle_units(spans, ring, random)
    chosen = ring & (places < budget)
    return torch.zeros_like(chosen).scatter(1, columns, chosen)


def draw_span_lengths(
    shape: torch.Size, random: torch.Generator, device: torch.device
) -> torch.Tensor:
    """Lengths of spans: geometric with p = 0.2, drawn again above 10 (SpanBERT, section 3.1).

    Returns:
        int64 of `shape`, from 1 to 10, mean 3.80.
    """
    # The distribution function inverted: P(length <= k) = (1 - q^k) / (1 - q^10), q = 1 - p.
    log_q = math.log(1 - SPAN_PROBABILITY)
    within = -math.expm1(MAX_SPAN * log_q)
    draws = torch.rand(shape, generator=random, device=device)
    return (torch.log1p(-draws * within) / log_q).ceil().clamp(1, MAX_SPAN).long()


def rarity_weights(counts: torch.Tensor) -> torch.Tensor:
    """Weights of vocabulary entries for strategy rare: count ** -0.5, adding up to 1.

    A token that is a hundred times rarer is ten times as likely to be drawn next. An entry that
    never occurs gets the weight of one that occurs once.

    Args:
        counts: [V], how often each entry occurs in the corpus.

    Returns:
        float32 [V].
    """
    weights = counts.double().clamp(min=1).rsqrt()
    return (weights / weights.sum()).float()


def word_starts(vocabulary: dict[str, int]) -> torch.Tensor:
    """Which entries begin a word; indexed by input ids it is `starts_word` of `choose_masked`.

    Where more entries begin with U+2581 than with `##`, the vocabulary is taken as sentencepiece's:
    those with U+2581 begin a word, so a word is an eojeol with its punctuation. Otherwise it is
    WordPiece's: all but those with `##` do, and punctuation is a word of its own. Special tokens
    begin a word; so does every entry of a vocabulary that marks neither.

    Args:
        vocabulary: entries and their ids, not negative; ids without an entry count as False.

    Returns:
        bool [highest id + 1], on the CPU.
    """
    spaces = sum(token.startswith(_SPACE) for token in vocabulary)
    by_spaces = spaces > sum(token.startswith("##") for token in vocabulary)
    table = [False] * (max(vocabulary.values(), default=-1) + 1)
    for token, index in vocabulary.items():
        if by_spaces:
            table[index] = token.startswith(_SPACE) or bool(_SPECIAL_TOKEN.fullmatch(token))
        else:
            table[index] = not token.startswith("##")
    return torch.tensor(table, dtype=torch.bool)


def mask_tokens(
    input_ids: torch.Tensor,
    masked: torch.Tensor,
    mask_id: int,
    random: torch.Generator,
    *,
    kept_fraction: float,
    random_fraction: float = 0.0,
    random_ids: torch.Tensor | None = None,
    by_run: bool = False,
) -> torch.Tensor:
    """Replace masked positions by [MASK], but for those kept as they are or made a random token.

    ELECTRA (Clark et al. 2020; its code) keeps 15%, and none becomes random. BERT (Devlin et al.
    2019, section 3.1) keeps 10% and replaces 10% by a random token, which is the original now and
    then.

    Args:
        input_ids: int64 [B, L].
        masked: bool [B, L] from `choose_masked`.
        mask_id: id of [MASK].
        random: source of the random draws, on the same device.
        kept_fraction: part of the masked positions that keep their token.
        random_fraction: part that become a random token.
        random_ids: int64 [R], what random tokens are drawn from, uniformly. Needed if
            `random_fraction` is above 0.
        by_run: draw once for every run of masked positions, so that all of a span is hidden, kept
            or random (SpanBERT, Joshi et al. 2020, section 3.1). Spans that touch are one run.

    Returns:
        int64 [B, L], the generator's input.

    Raises:
        InputError: fractions below 0 or together above 1, or no `random_ids` where needed.
    """
    # Rounding of the sum (0.7 + 0.2 + 0.1) is not an error of the caller.
    if min(kept_fraction, random_fraction) < 0 or kept_fraction + random_fraction > 1 + 1e-9:
        raise InputError(
            "expected fractions kept and random from 0, together at most 1, found "
            "{kept_fraction:g} and {random_fraction:g}",
            kept_fraction=kept_fraction,
            random_fraction=random_fraction,
        )
    draws = _uniform(input_ids, random)
    if by_run:
        columns = torch.arange(masked.shape[1], device=masked.device)
        draws = draws.gather(1, columns - span_bounds(masked)[2])
    out = input_ids.masked_fill(masked & (draws >= kept_fraction + random_fraction), mask_id)
    if random_fraction > 0:
        if random_ids is None or len(random_ids) == 0:
            raise InputError(
                "expected random_ids with random_fraction {random_fraction:g}, found none",
                random_fraction=random_fraction,
            )
        chosen = torch.randint(
            len(random_ids), input_ids.shape, generator=random, device=input_ids.device
        )
        becomes_random = (draws >= kept_fraction) & (draws < kept_fraction + random_fraction)
        out = torch.where(masked & becomes_random, random_ids[chosen], out)
    return out


def masked_places(masked: torch.Tensor, fraction: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Flat indices of the masked positions, the same number K for every row.

    K is `fraction` x L rounded up, at least one, and depends on the shape only. Rows with fewer
    masked positions are filled up at their end with the index of their column 0, which is [CLS]
    and never masked.

    Args:
        masked: bool [B, L] from `choose_masked` with the same `fraction`; what a row has beyond K
            is left out.

    Returns:
        int64 [B * K] indices into [B x L], rising within a row's masked positions, and bool
        [B * K], False at the filling.
    """
    num_rows, num_columns = masked.shape
    # Rounded first, for 0.1 x 30 is above 3 on a computer.
    num_places = min(num_columns, max(1, math.ceil(round(fraction * num_columns, 6))))
    columns = torch.arange(num_columns, device=masked.device)
    keys = torch.where(masked, columns, num_columns)
    found = keys.topk(num_places, dim=1, largest=False, sorted=True).values
    real = found < num_columns
    row_begins = torch.arange(num_rows, device=masked.device)[:, None] * num_columns
    places = row_begins + torch.where(real, found, 0)
    return places.flatten(), real.flatten()


def span_bounds(masked: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Neighbours of each masked run, for the span boundary objective (SpanBERT, section 3.2).

    Args:
        masked: bool [B, L].

    Returns:
        Three int64 [B, L]. At a masked position: column of the unmasked position before its run
        (-1 if the run begins the row), of the one after (L if it ends the row), and the place in
        the run, from 0. [CLS] and [SEP] are never masked, so -1 and L do not occur in framed
        rows. At an unmasked position: its own column twice, and 0.
    """
    num_columns = masked.shape[1]
    columns = torch.arange(num_columns, device=masked.device).expand_as(masked)
    left = columns.masked_fill(masked, -1).cummax(dim=1).values
    right = columns.masked_fill(masked, num_columns).flip(1).cummin(dim=1).values.flip(1)
    return left, right, torch.where(masked, columns - left - 1, 0)
