"""Batches of a tokenised corpus: which sequences stand in each, and their tensors.

Two kinds. *Like lengths*: one sequence a row, rows of a batch about equally long, little padding,
a few dozen shapes. *Packed*: rows of one fixed length filled with whole sequences, one shape for
the whole run (what `torch.compile` and CUDA graphs want), attention kept inside each sequence
(Krell et al. 2021, arXiv:2107.02027).
Shapes: B rows, L positions, N sequences.
"""

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import torch
from transformers import PreTrainedTokenizerFast

from malmoi.errors import InputError
from malmoi.pretrain.data.tokenized import TokenizedCorpus

# Sequences are sorted by length within chunks of this many batches: nearly no padding, yet the
# order stays random from batch to batch.
_BATCHES_PER_CHUNK = 64
WIDTH_MULTIPLE = 4
# Rows opened for packing beyond what the tokens would fill without a gap. Less, and the last short
# sequences find no room and make rows of their own kind; on reviews 0.01 packs 98% to 99%.
_SPARE_ROWS = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchPlan:
    """The sequences of one batch."""

    indices: np.ndarray
    """int64 [N]: sequences of the corpus, row after row."""
    row_sizes: np.ndarray
    """int64 [B]: how many of them each row holds; 0 is a row of padding."""
    width: int
    """L: positions in a row."""
    packed: bool
    """Whether a row may hold several sequences."""


def plan_epoch(
    lengths: np.ndarray, tokens_per_batch: int, seed: int, epoch: int
) -> list[BatchPlan]:
    """Split one shuffled pass over the corpus into batches of like lengths.

    Args:
        lengths: int64 [sequences], tokens, [CLS] and [SEP] not counted.
        tokens_per_batch: upper bound of sequences x longest sequence in a batch.

    Returns:
        The batches in their order. The same arguments give the same plan, which is what lets a
        resumed run find its place.
    """
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    widths = padded_width(lengths[order])
    chunk_of = np.cumsum(widths) // (tokens_per_batch * _BATCHES_PER_CHUNK)
    batches: list[BatchPlan] = []
    for chunk in np.split(np.arange(len(order)), np.flatnonzero(np.diff(chunk_of)) + 1):
        # Longest first, so that the first sequence of a batch decides its width, and all but the
        # last batch of a chunk have one of a few shapes: every new shape costs memory and time.
        by_length = chunk[np.argsort(-widths[chunk], kind="stable")]
        start = 0
        while start < len(by_length):
            width = int(widths[by_length[start]])
            size = max(1, tokens_per_batch // width)
            indices = order[by_length[start : start + size]]
            ones = np.ones(len(indices), dtype=np.int64)
            batches.append(BatchPlan(indices=indices, row_sizes=ones, width=width, packed=False))
            start += size
    return [batches[index] for index in random.permutation(len(batches))]


def padded_width(lengths: np.ndarray) -> np.ndarray:
    """Width of a batch whose longest sequence has `lengths` tokens: framed, a multiple of 4."""
    return -(-(lengths + 2) // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def plan_packed_epoch(
    lengths: np.ndarray, tokens_per_batch: int, row_length: int, seed: int, epoch: int
) -> list[BatchPlan]:
    """Pack one pass over the corpus into batches of `tokens_per_batch // row_length` rows each.

    Which lengths share a row is the same in each epoch (see `_pack_lengths`); which sequences of
    those lengths, their order in the row, and the order of the rows are drawn anew. So every
    epoch has the same number of batches, and since rows have nearly the same mix of lengths,
    batches hold nearly the same number of sequences. The last batch is filled with rows of
    padding. Memory is linear in the sequences.

    Args:
        lengths: int64 [sequences], tokens, [CLS] and [SEP] not counted.
        tokens_per_batch: positions in a batch, at most.
        row_length: positions in a row, [CLS] and [SEP] of each sequence included.

    Returns:
        The batches in their order; the same arguments give the same plan.

    Raises:
        InputError: a row does not fit a batch, or a sequence does not fit a row.
    """
    if not 0 < row_length <= tokens_per_batch:
        raise InputError(
            "expected rows of 1 to {tokens_per_batch:,} tokens, as many as a batch has, found "
            "{row_length:,}; change the row length or the tokens per batch",
            tokens_per_batch=tokens_per_batch,
            row_length=row_length,
        )
    if not len(lengths):
        return []
    framed = np.asarray(lengths) + 2
    if framed.max() > row_length:
        raise InputError(
            "expected sequences of at most {row_length:,} tokens with [CLS] and [SEP], as long as "
            "a row, found {longest:,}; lengthen the rows or cut the texts shorter",
            row_length=row_length,
            longest=framed.max(),
        )
    random = np.random.default_rng([seed, epoch])
    indices, row_sizes = _fill_rows(framed, row_length, random)
    place_of_row = random.permutation(len(row_sizes))
    # Halved, so that no sum is rounded up to the next row.
    keys = np.repeat(place_of_row, row_sizes) + random.random(len(indices)) / 2
    indices = indices[np.argsort(keys)]
    rows_per_batch = tokens_per_batch // row_length
    num_batches = -(-len(row_sizes) // rows_per_batch)
    filled = np.zeros(num_batches * rows_per_batch, dtype=np.int64)
    filled[place_of_row] = row_sizes
    by_batch = filled.reshape(num_batches, rows_per_batch)
    parts = np.split(indices, np.cumsum(by_batch.sum(axis=1))[:-1])
    return [
        BatchPlan(indices=part, row_sizes=sizes_of_batch, width=row_length, packed=True)
        for part, sizes_of_batch in zip(parts, by_batch, strict=True)
    ]


def _fill_rows(
    framed: np.ndarray, row_length: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Put sequences in rows; which of those of a length comes where is drawn.

    Args:
        framed: int64 [sequences], tokens, [CLS] and [SEP] included.

    Returns:
        int64 [sequences], their numbers row after row, and int64 [rows], how many each holds.
    """
    order = random.permutation(len(framed))
    # Small integers are sorted by counting: in linear time.
    order = order[np.argsort(framed[order].astype(np.min_scalar_type(row_length)), kind="stable")]
    counts = np.bincount(framed, minlength=row_length + 1)
    next_of = np.cumsum(counts) - counts  # where the unused sequences of each length begin
    blocks: list[np.ndarray] = []
    sizes: list[np.ndarray] = []
    for num_rows, row in _pack_lengths(counts, row_length):
        block = np.empty((num_rows, len(row)), dtype=np.int64)
        for place, length in enumerate(row):
            block[:, place] = order[next_of[length] : next_of[length] + num_rows]
            next_of[length] += num_rows
        blocks.append(block.ravel())
        sizes.append(np.full(num_rows, len(row), dtype=np.int64))
    return np.concatenate(blocks), np.concatenate(sizes)


def _pack_lengths(counts: np.ndarray, row_length: int) -> list[tuple[int, tuple[int, ...]]]:
    """Worst-fit decreasing over the histogram of lengths: each next one where most room is left.

    Shortest-pack-first histogram packing (Krell et al. 2021), with nearly all rows opened at the
    start so that they come out alike; its time hardly depends on the number of sequences. Best fit
    leaves up to 1.5% fewer gaps on reviews, but makes some rows of long and others of only short
    sequences: batches of 32 rows of 128 would then hold 223 +- 31 of them; here it is +- 3 to 8,
    in a random order +- 11. Where most sequences take a quarter to a half of a row, best fit is
    clearly fuller (94% against 85% for lengths even over 30 to 70 in rows of 128): use longer rows.

    Args:
        counts: int64 [row_length + 1]: how many sequences have each length, frame included.

    Returns:
        How many rows have the same lengths in them, and those lengths. They sum up to at most
        `row_length` in each row, and over all rows each length occurs as often as in `counts`.
    """
    tokens = int(counts @ np.arange(row_length + 1))
    # by_room[r]: rows with r positions left.
    by_room: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in range(row_length + 1)]
    by_room[row_length].append((int(np.ceil(tokens / row_length * (1 + _SPARE_ROWS))), ()))
    for length in range(row_length, 0, -1):
        left = int(counts[length])
        while left:
            room = next((r for r in range(row_length, length - 1, -1) if by_room[r]), None)
            if room is None:
                room = row_length
                by_room[room].append((-(-left // (row_length // length)), ()))
            num_rows, row = by_room[room].pop()
            used = min(num_rows, left)
            by_room[room - length].append((used, (*row, length)))
            if used < num_rows:
                by_room[room].append((num_rows - used, row))
            left -= used
    return [(num_rows, row) for rows in by_room for num_rows, row in rows if row]


def iter_plans(
    lengths: np.ndarray,
    tokens_per_batch: int,
    seed: int,
    *,
    row_length: int | None = None,
    skip: int = 0,
) -> Iterator[BatchPlan]:
    """Batches without end, epoch after epoch, the first `skip` left out.

    Args:
        row_length: pack rows of this many tokens; batches of like lengths when not given.
        skip: batches to leave out. None is made for it; epochs of like lengths are planned, of the
            packed ones only the first (it tells how many batches each has) and the one resumed.

    Raises:
        InputError: as `plan_packed_epoch`; or there are no sequences.
    """
    if not len(lengths):
        raise InputError("expected sequences to make batches of, found none")
    epoch = 0
    while True:
        if row_length is None:
            plans = plan_epoch(lengths, tokens_per_batch, seed, epoch)
        else:
            plans = plan_packed_epoch(lengths, tokens_per_batch, row_length, seed, epoch)
            if skip >= len(plans):  # every packed epoch has as many batches
                epoch += skip // len(plans)
                skip %= len(plans)
                continue
        yield from plans[skip:]
        skip = max(0, skip - len(plans))
        epoch += 1


def planned_batches(
    lengths: np.ndarray,
    tokens_per_batch: int,
    seed: int,
    *,
    epochs: int,
    row_length: int | None = None,
) -> int:
    """How many batches `iter_plans` gives in so many epochs; every one has about as many."""
    if row_length is None:
        return epochs * len(plan_epoch(lengths, tokens_per_batch, seed, 0))
    return epochs * len(plan_packed_epoch(lengths, tokens_per_batch, row_length, seed, 0))


@dataclass(kw_only=True)
class Batch:
    """The tensors of one batch."""

    input_ids: torch.Tensor
    """int64 [B, L], with [CLS], [SEP] and [PAD]."""
    maskable: torch.Tensor
    """bool [B, L], False at [CLS], [SEP] and [PAD]."""
    is_real: torch.Tensor
    """bool [B, L], False at [PAD] only."""
    position_ids: torch.Tensor | None
    """int64 [B, L] in a packed batch: 0, 1, ... in each sequence, 0 at padding; else None."""
    documents: torch.Tensor | None
    """int64 [B, L] in a packed batch: 1, 2, ... by sequence of the row, 0 at padding; else None."""
    num_tokens: int
    """Real tokens, [CLS] and [SEP] included; counted on the host."""

    @cached_property
    def attention_mask(self) -> torch.Tensor | None:
        """What stock transformers models take as `attention_mask`; made when first asked for.

        Like lengths: int64 [B, L], 0 at padding, or None when nothing is padded.
        Packed: bool [B, 1, L, L], True where a position (third dimension) may attend to another
        (fourth): within its sequence, and from padding to padding, so that no softmax is empty.

        transformers 5 hands a four-dimensional mask to the attention as it is. "sdpa" takes bool
        as is; "eager" would *add* it to the scores without an error: give it
        `torch.where(mask, 0.0, -torch.inf)`. A head that computes a loss from `labels` itself
        reads the mask as [B, L], so compute the loss outside.
        """
        if self.documents is not None:
            return self.documents[:, None, :, None] == self.documents[:, None, None, :]
        if self.num_tokens == self.input_ids.numel():
            return None
        return self.is_real.long()

    def to(self, device: torch.device) -> "Batch":
        """The batch on another device; without waiting for it when the batch is pinned."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=tensor.is_pinned()))

    def pin_memory(self) -> "Batch":
        """A copy in page-locked memory, from which a GPU copies while the host goes on."""
        return self._map(torch.Tensor.pin_memory)

    def _map(self, change: Callable[[torch.Tensor], torch.Tensor]) -> "Batch":
        return Batch(
            input_ids=change(self.input_ids),
            maskable=change(self.maskable),
            is_real=change(self.is_real),
            position_ids=None if self.position_ids is None else change(self.position_ids),
            documents=None if self.documents is None else change(self.documents),
            num_tokens=self.num_tokens,
        )


@dataclass(frozen=True, kw_only=True)
class FrameIds:
    """Ids of the special tokens around a text: [CLS] [SEP] [PAD]."""

    cls_id: int
    sep_id: int
    pad_id: int

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerFast) -> Self:
        """Those of a tokenizer."""
        return cls(
            cls_id=tokenizer.cls_token_id,
            sep_id=tokenizer.sep_token_id,
            pad_id=tokenizer.pad_token_id,
        )


def make_batch(corpus: TokenizedCorpus, plan: BatchPlan, frame: FrameIds) -> Batch:
    """Read the sequences of a plan from disk and frame them with [CLS], [SEP] and [PAD].

    On the host, in a few operations over all positions (flat: row x L + column) at once.
    """
    offsets, ids = np.asarray(corpus.offsets), np.asarray(corpus.ids)  # memmap indexes slowly
    starts = offsets[plan.indices]
    lengths = offsets[plan.indices + 1] - starts
    framed = lengths + 2
    num_rows, width = len(plan.row_sizes), plan.width
    ends = np.concatenate([[0], np.cumsum(framed)])  # as if all sequences stood in one row
    row_ends = np.concatenate([[0], np.cumsum(plan.row_sizes)])
    # Where each row begins in the batch, less where it would begin in that one row.
    shift = np.arange(num_rows) * width - ends[row_ends[:-1]]
    cls_at = ends[:-1] + np.repeat(shift, plan.row_sizes)
    token_ends = np.cumsum(lengths)
    steps = np.arange(token_ends[-1] if len(lengths) else 0)
    before = token_ends - lengths
    tokens_at = np.repeat(cls_at + 1 - before, lengths) + steps

    input_ids = np.full(num_rows * width, frame.pad_id, dtype=np.int64)
    input_ids[tokens_at] = ids[np.repeat(starts - before, lengths) + steps]
    input_ids[cls_at] = frame.cls_id
    input_ids[cls_at + lengths + 1] = frame.sep_id
    maskable = np.zeros(num_rows * width, dtype=bool)
    maskable[tokens_at] = True
    is_real = maskable.copy()
    is_real[cls_at] = True
    is_real[cls_at + lengths + 1] = True

    def tensor(flat: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(flat.reshape(num_rows, width))

    position_ids = documents = None
    if plan.packed:
        steps = np.arange(ends[-1])
        real_at = np.repeat(cls_at - ends[:-1], framed) + steps
        in_row = np.arange(len(framed)) - np.repeat(row_ends[:-1], plan.row_sizes)
        positions_flat = np.zeros(num_rows * width, dtype=np.int64)
        positions_flat[real_at] = steps - np.repeat(ends[:-1], framed)
        documents_flat = np.zeros(num_rows * width, dtype=np.int64)
        documents_flat[real_at] = np.repeat(in_row + 1, framed)
        position_ids, documents = tensor(positions_flat), tensor(documents_flat)
    return Batch(
        input_ids=tensor(input_ids),
        maskable=tensor(maskable),
        is_real=tensor(is_real),
        position_ids=position_ids,
        documents=documents,
        num_tokens=int(ends[-1]),
    )


class Prefetcher:
    """The batches of `plans` on `device`, the next ones made in a thread while a step runs.

    Gives exactly what `make_batch` for each plan would, in that order, and draws no random number
    of torch's. To be used in a `with` statement: leaving it, also by an exception, ends the
    thread; batches made and not taken are dropped, and a resumed run makes them again. An
    exception in the thread is raised where the batch is asked for.

    For CUDA the thread puts batches in page-locked memory, and the copy to the GPU is issued where
    the batch is asked for, without waiting for it: on that thread's stream, so no other stream
    has to be waited for.

    Args:
        depth: batches kept ready, at most.
    """

    def __init__(
        self,
        corpus: TokenizedCorpus,
        plans: Iterator[BatchPlan],
        tokenizer: PreTrainedTokenizerFast,
        device: torch.device,
        *,
        depth: int = 2,
    ) -> None:
        self._corpus = corpus
        self._plans = plans
        # Read here: tokenizers fail when two threads use one at the same time.
        self._frame = FrameIds.of(tokenizer)
        self._device = device
        if device.type == "cuda" and device.index is None:
            self._device = torch.device("cuda", torch.cuda.current_device())
        self._ready: queue.SimpleQueue[Batch | BaseException | None] = queue.SimpleQueue()
        self._free = threading.Semaphore(depth)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="prefetcher", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        last: BaseException | None = None
        try:
            if self._device.type == "cuda":
                # A new thread is on GPU 0: pinning there would cost every process memory on it.
                torch.cuda.set_device(self._device)
            while not self._stopping.is_set():
                self._free.acquire()
                if self._stopping.is_set():
                    break
                plan = next(self._plans, None)
                if plan is None:
                    break
                batch = make_batch(self._corpus, plan, self._frame)
                self._ready.put(batch.pin_memory() if self._device.type == "cuda" else batch)
        except BaseException as error:  # whatever it is, the other side waits for an answer
            last = error
        self._ready.put(last)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if self._stopping.is_set():
            raise StopIteration
        item = self._ready.get()
        if isinstance(item, Batch):
            self._free.release()
            return item.to(self._device)
        self.close()
        if item is None:
            raise StopIteration
        raise item

    def close(self) -> None:
        """End the thread, after the batch it may be making; no batch is given from then on."""
        self._stopping.set()
        self._free.release()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
