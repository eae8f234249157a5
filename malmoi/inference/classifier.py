"""The classifier that everything else predicts with: texts in, labels with probabilities out.

Legend: N texts, B texts in a batch, K labels.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malmoi.errors import InputError
from malmoi.files import directory_at_once
from malmoi.inference.batched_logits import logits_by_length
from malmoi.inference.batching import TokenizedTexts
from malmoi.inference.calibration import accepted_confidences, fitted_temperature
from malmoi.inference.description import Gives
from malmoi.inference.engine import Engineless, EngineName, check_engine
from malmoi.inference.engine_choice import Opened, Say, open_classifier
from malmoi.inference.explaining import Explanation, Texts, explain
from malmoi.inference.inputs import (
    Input,
    all_clean,
    check_texts,
    chunks_of,
    listed,
    stream_chunks,
    text_of_cell,
)
from malmoi.inference.linear.alone import open_alone
from malmoi.inference.linear.linear_part import LinearPart, load_linear
from malmoi.inference.output_columns import OutputColumns
from malmoi.inference.prediction import Prediction, predictions_of, probabilities_of
from malmoi.inference.predictions import Predictions
from malmoi.inference.windows import MOST_WINDOWS
from malmoi.inference.working_ahead import worked_ahead
from malmoi.interrupts import interrupts_held
from malmoi.model_folders import classifier_folder, has_weights, is_linear_alone
from malmoi.progress import OnBatch, progress_of_batches
from malmoi.text.reading.frames import check_columns

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["Classifier", "Prediction"]

# A text, and the second one of a pair.
Clean = tuple[str, str | None]


@dataclass(frozen=True)
class _Prepared:
    """n clean texts, ready to be computed, and their tokens."""

    texts: list[str]
    tokens: TokenizedTexts


class Classifier:
    """A fine-tuned model and its tokenizer; safe to use from several threads.

    The same text gets the same answer alone and in any batch: to 1e-5 of a probability in fp32, to
    0.02 in bf16 and to 0.05 in int8, 0.12 with twelve layers, for those number formats depend a
    little on what else is in a batch (tested).
    """

    def __init__(
        self,
        opened: Opened,
        name: str,
        *,
        temperature: float = 1.0,
        linear: LinearPart | None = None,
        accepts: Mapping[float, float] | None = None,
    ) -> None:
        """Use what `malmoi.inference.engine_choice.open_classifier` gave.

        Args:
            temperature: divides the logits, so that probabilities mean what they say (Guo et al.
                2017); labels stay as they are.
            linear: adds its logits to those of the engine.
            accepts: wished accuracy to the confidence from which texts reach it; see `threshold`.
        """
        self.name = name
        self._accepts = dict(accepts or {})
        self._engine, self._tokenizer = opened.engine, opened.tokenizer
        self.description = opened.description
        self.temperature = temperature
        self._linear = linear
        # Of its predictions in a table; who wants other ones puts them here.
        self.columns = OutputColumns(opened.description)
        self._said_cut = False
        self._loaded: tuple[str, str, str | None, int | None] | None = None

    def __repr__(self) -> str:
        """Name, labels and what computes."""
        shown = ", ".join(self.labels)
        return f"<Classifier {self.name} ({shown}) by {self.engine}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it was loaded from: another process loads it again, by the same engine.

        Raises:
            InputError: it was made in memory.
        """
        if self._loaded is None:
            raise InputError(
                "{name} was not loaded from a folder, so another process cannot load it; save it "
                "and give the folder to Classifier.load",
                name=self.name,
            )
        path, engine, revision, threads = self._loaded
        return partial(Classifier.load, path, engine, revision, threads=threads), ()

    @classmethod
    def fit(
        cls,
        data: object,
        text: str | None = None,
        label: str | Sequence[str] | None = None,
        **options: Any,
    ) -> Classifier:
        """Train on labelled texts, and measure it on the way: `malmoi.cross_validate`'s classifier.

        Args:
            data: as `malmoi.cross_validate`, whose other options may be given, too, such as
                `quick=True`.
            text: column of the texts.
            label: column of the labels.

        Raises:
            InputError: what was given cannot be used.
        """
        from malmoi import cross_validate  # the front door: this floor knows of no training

        return cross_validate(data, text, label, **options).classifier

    @classmethod
    def load(
        cls,
        path: str | Path,
        engine: str = "auto",
        revision: str | None = None,
        *,
        threads: int | None = None,
        say: Say | None = None,
    ) -> Classifier:
        """Load a stock sequence classifier: of one label, of several, or of a value.

        Args:
            path: directory, name of a run or of a released model, or Hub id.
            engine: `torch-fp32`, `torch-bf16`, `onnx-fp32` or `onnx-int8`. `torch`: in the number
                format that is the faster one on most machines of this kind. `fastest`: what gives
                the labels of `torch-fp32` to 99.5% of the sample texts, measured in 20 seconds.
                `auto`: what was measured, else what suits the processor; of other classifiers than
                ELECTRA `fastest`. Without effect, which is said, where there is no encoder.
            revision: branch, tag or commit of a Hub id.
            threads: that an ONNX engine computes with; all cores where it is None.
            say: called with a line before something that takes long; by default the line goes to
                standard error.

        Raises:
            InputError: in one line, when `path` is no name, when the directory is missing or lacks
                its configuration or weights, when the weights are damaged or belong to something
                else than a classifier, when tokenizer and model do not match, when labels have no
                names, or when there is no such engine.
        """
        if threads is not None and not (isinstance(threads, int) and threads > 0):
            raise InputError(
                "expected threads, a number from 1 on, or None, found {threads!r}", threads=threads
            )
        folder = classifier_folder(path, revision)
        linear = load_linear(folder)
        say = say or _to_standard_error
        if linear is not None and not has_weights(folder):
            opened = open_alone(linear, folder)
            computes = opened.engine.name
            taken = engine in ("linear", "auto") or computes.startswith(
                check_engine(engine, "engine")
            )
            if not taken:
                say(
                    f"{name_of_model(path)} has no fine-tuned encoder: it is computed by "
                    f"{computes}, not by {engine}"
                )
        else:
            opened = open_classifier(folder, engine, threads=threads, say=say)
        if linear is not None:
            linear.check_labels(opened.description.labels, folder)
        found = cls(
            opened,
            name_of_model(path),
            temperature=fitted_temperature(folder),
            linear=linear,
            accepts=accepted_confidences(folder),
        )
        # A folder is there from any working directory, a name on any machine.
        place = str(Path(path).absolute() if Path(path).exists() else path)
        found._loaded = (place, opened.engine.name, revision, threads)
        return found

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the classifier to a folder of its own, for `Classifier.load`, `malmoi serve` etc.

        Args:
            path: the folder to make.
            overwrite: replace a classifier that is there.

        Raises:
            InputError: something is there that may not be replaced, or the classifier was made in
                memory.
        """
        source, place = self.folder, Path(path)
        if source is None:
            raise InputError("{name} was made in memory; it has no folder to copy", name=self.name)
        if place.exists() and source.samefile(place):
            return
        is_model = is_linear_alone(place) or has_weights(place)
        if place.exists() and not (overwrite and is_model):
            raise InputError(
                "{place} exists already; give another folder, or overwrite=True to replace a "
                "classifier",
                place=place,
            )
        # Whole beside the old one before that goes.
        made = place.with_name(f".{place.name}.new")
        shutil.rmtree(made, ignore_errors=True)
        with directory_at_once(made) as scratch:
            shutil.copytree(source, scratch, dirs_exist_ok=True)
        with interrupts_held():
            if place.exists():
                shutil.rmtree(place)
            made.rename(place)

    @property
    def folder(self) -> Path | None:
        """The folder of its files; None where it was made in memory."""
        if self._loaded is None:
            return None
        path, _, revision, _ = self._loaded
        return classifier_folder(path, revision)

    @property
    def labels(self) -> list[str]:
        """Names of the K labels, in the model's order; of a value its one name."""
        return list(self.description.labels)

    @property
    def engine(self) -> EngineName | Engineless:
        """What computes; of a classifier without an encoder `linear`."""
        return self._engine.name

    @property
    def parts(self) -> list[str]:
        """What its logits are the sum of: `encoder`, and the parts of a linear classifier."""
        encoder = ["encoder"] if self._engine.name != "linear" else []
        return encoder + (self._linear.parts if self._linear is not None else [])

    @property
    def gives(self) -> Gives:
        """One label, several labels, or a value."""
        return self.description.gives

    @property
    def reads_pairs(self) -> bool | None:
        """Whether it reads two texts at a time; None of a model that does not say so."""
        return self.description.pairs

    @property
    def most_accuracy(self) -> float | None:
        """The most that `threshold` may be asked for; None where nothing was measured."""
        return max(self._accepts, default=None)

    def threshold(self, accuracy: float) -> float:
        """The confidence from which answers are as often right as is wished.

        Of texts in k-fold by models that had not learnt them; `report.html` says how many of all
        texts that answers.

        Args:
            accuracy: a fraction, such as 0.95.

        Raises:
            InputError: it was not measured, or no confidence reaches it.
        """
        wishes = [wish for wish in self._accepts if wish >= accuracy - 1e-9]
        if not self._accepts:
            raise InputError(
                "expected a classifier of one label whose answers k-fold has measured, found none "
                "in {name}; train it with python finetune/kfold.py",
                name=self.name,
            )
        if not wishes or not 0 < accuracy < 1:
            raise InputError(
                "expected an accuracy up to {most:g}, which {name} reaches on texts that it is "
                "sure of, found {accuracy:g}",
                most=self.most_accuracy,
                name=self.name,
                accuracy=accuracy,
            )
        return self._accepts[min(wishes)]

    def predict(
        self,
        texts: Iterable[str],
        pairs: Iterable[str] | None = None,
        *,
        progress: OnBatch | bool | None = None,
    ) -> Predictions:
        """Predict every text, in the order given.

        Texts are cleaned exactly as the training texts were; one that is empty, or empty after
        cleaning, is predicted from `[CLS] [SEP]` alone. Equal texts are computed once.

        Args:
            texts: N of any length, as a list, an array, a column of pandas or Arrow, or anything
                that yields them; one that is longer than the model reads is read in windows, see
                `malmoi.inference.windows`. Of a pair the longer text is cut.
            pairs: N second texts, for a model that reads two at a time.
            progress: whether to show how far it is; None: in a notebook and on a terminal, where
                it takes longer than some seconds. A function is called with (texts done, texts in
                all) after every batch.

        Returns:
            A list of N predictions: `Prediction` of a model of one label; of one of several labels
            `LabelsPrediction`, of one of values `ValuePrediction`, of
            `malmoi.inference.prediction`. It has `label`, `confidence` and `to_frame()` besides.

        Raises:
            InputError: one text or a table instead of a list, something that is no text, pairs
                where none are read or none where they are, or damaged weights.
        """
        index = getattr(texts, "index", None)
        clean = self._cleaned(texts, pairs)
        with progress_of_batches(progress) as on_batch:
            found = self._predicted(clean, on_batch)
        # A list has a method of that name.
        return Predictions(found, self.columns, None if callable(index) else index)

    def _predicted(self, clean: Sequence[Clean], on_batch: OnBatch | None) -> list[Prediction]:
        """Predict clean texts, equal ones once."""
        rows: dict[Clean, list[int]] = {}
        for index, text in enumerate(clean):
            rows.setdefault(text, []).append(index)
        unique = list(rows)
        chunks = chunks_of(unique)
        predictions: list[Prediction | None] = [None] * len(clean)
        done = 0
        for chunk, tokens in worked_ahead(lambda chunk: (chunk, self._tokenized(chunk)), chunks):
            for places, found in self._batches(tokens):
                for place, prediction in zip(places, found, strict=True):
                    for index in rows[chunk[place]]:
                        predictions[index] = prediction
                        done += 1
                if on_batch is not None:
                    on_batch(done, len(clean))
        return [prediction for prediction in predictions if prediction is not None]

    def predict_iter(self, stream: Iterable[Input]) -> Iterator[Prediction]:
        """Predict a stream of any length, in its order; memory is that of some thousand texts.

        Equal texts are computed once where they stand near each other. The stream is read some
        thousand texts ahead, by the thread that takes the predictions.

        Args:
            stream: texts, or tuples of two for a model that reads pairs.

        Yields:
            As many predictions, as `predict`.

        Raises:
            InputError: as `predict`.
        """
        if isinstance(stream, str | bytes):
            raise InputError("expected a stream of texts, found one text; write [text]")
        if not hasattr(stream, "__iter__") or hasattr(stream, "columns"):
            raise InputError(
                "expected a stream of texts, found {kind}; give what yields texts, a table to "
                "predict_frame",
                kind=type(stream).__name__,
            )
        for places, tokens in worked_ahead(self._prepared, stream_chunks(stream)):
            found: dict[int, Prediction] = {}
            for batch, predictions in self._batches(tokens):
                found.update(zip(batch, predictions, strict=True))
            for place in places:
                yield found[place]

    def predict_frame(
        self,
        frame: pd.DataFrame,
        text_column: str,
        pair_column: str | None = None,
        *,
        progress: OnBatch | bool | None = None,
    ) -> pd.DataFrame:
        """Predict the texts of a table.

        Args:
            frame: N rows; it is not changed.
            text_column: name of the column with the texts; a missing cell, or one that is empty
                once it is clean, gets no prediction. A number is the text of its digits.
            pair_column: the same of the second texts of pairs.
            progress: as `predict`.

        Returns:
            A copy with new columns to its right: `label`, `score` and `prob_` with every label; of
            a model of values `value`. A name that is taken gets a number.

        Raises:
            InputError: no table, no such column or several of that name, or as `predict`.
        """
        if not hasattr(frame, "columns"):
            raise InputError(
                "expected a table with a column {text_column!r}, found {kind}; give a pandas "
                "DataFrame, a list of texts to predict",
                text_column=text_column,
                kind=type(frame).__name__,
            )
        named = [text_column, *([] if pair_column is None else [pair_column])]
        check_columns(frame, named)
        cells = [[text_of_cell(value) for value in frame[column].tolist()] for column in named]
        return self.columns.added(frame, self.predict_filled(*cells, progress=progress))

    def explain(
        self, text: str, pair: str | None = None, *, label: str | None = None
    ) -> Explanation:
        """Say which words carried a decision, by leaving each of them out.

        Args:
            text: of any length; what no part of the model reads is not explained.
            pair: the second text, for a model that reads two at a time.
            label: the one to explain; None for the likeliest one. A value has none.

        Returns:
            The words with their places in `text` and `pair`, and what the label's log-odds (or the
            value) lose without each. At most 512 words are predicted without, in one call; `cut`
            says whether there are more.

        Raises:
            InputError: as `predict`, or there is no such label.
        """

        def predict(variants: Sequence[Texts]) -> list[Prediction]:
            firsts, *seconds = map(list, zip(*variants, strict=True))
            return self.predict(firsts, *seconds, progress=False)

        texts = (text,) if pair is None else (text, pair)
        check_texts(texts)
        reads_all = self._linear is not None
        return explain(predict, texts, self.labels, label, reads_all=reads_all)

    def predict_rows(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> list[list[Any]]:
        """Predictions as the cells of `columns`, N rows; empty ones where a text is missing.

        Raises:
            InputError: as `predict`.
        """
        columns = self.columns
        return [
            columns.empty() if found is None else columns.cells(found)
            for found in self.predict_filled(texts, pairs)
        ]

    def predict_filled(
        self,
        texts: Iterable[str],
        pairs: Iterable[str] | None = None,
        *,
        progress: OnBatch | bool | None = None,
    ) -> list[Prediction | None]:
        """N predictions of the cells of a table; None where a text is empty once it is clean.

        Args:
            texts: N.
            pairs: N second texts.
            progress: as `predict`, of the texts that are not empty.

        Raises:
            InputError: as `predict`.
        """
        clean = self._cleaned(texts, pairs)
        filled = [place for place, (text, pair) in enumerate(clean) if text and pair != ""]
        with progress_of_batches(progress) as on_batch:
            found = self._predicted([clean[place] for place in filled], on_batch)
        predictions: list[Prediction | None] = [None] * len(clean)
        for place, prediction in zip(filled, found, strict=True):
            predictions[place] = prediction
        return predictions

    def _cleaned(self, texts: Iterable[str], pairs: Iterable[str] | None) -> list[Clean]:
        texts = listed(texts)
        self._check_kind(pairs is not None)
        if pairs is None:
            return [(text, None) for text in all_clean(texts)]
        pairs = listed(pairs)
        if len(pairs) != len(texts):
            raise InputError(
                "expected a second text for each of {texts:,}, found {pairs:,}",
                texts=len(texts),
                pairs=len(pairs),
            )
        return list(zip(all_clean(texts), all_clean(pairs), strict=True))

    def _check_kind(self, given: bool) -> None:
        if self.description.pairs is True and not given:
            raise InputError(
                "{name} reads two texts at a time; give the second ones, too: predict(texts, "
                "pairs), explain(text, pair), --pair",
                name=self.name,
            )
        if self.description.pairs is False and given:
            raise InputError(
                "{name} reads one text at a time; leave out the second ones", name=self.name
            )

    def _prepared(self, chunk: tuple[int, list[Input]]) -> tuple[list[int], _Prepared]:
        """The place of each input of a stream among the different ones, and those tokenised."""
        first, inputs = chunk
        paired = isinstance(inputs[0], tuple)
        for place, item in enumerate(inputs, first):
            texts = item if isinstance(item, tuple) else (item,)
            if isinstance(item, tuple) and len(item) != 2:
                raise InputError(
                    "expected pairs of texts, found {count} at place {where}, counted from 0; "
                    "give tuples of two",
                    count=len(item),
                    where=place,
                )
            check_texts(texts, place)
            self._check_kind(len(texts) == 2)
            if isinstance(item, tuple) is not paired:
                raise InputError(
                    "expected texts or pairs of texts in a stream, found both (place {where}, "
                    "counted from 0); give one kind",
                    where=place,
                )
        known: dict[Clean, int] = {}
        firsts = all_clean([item[0] if isinstance(item, tuple) else item for item in inputs])
        seconds = all_clean([item[1] for item in inputs if isinstance(item, tuple)])
        cleaned = zip(firsts, seconds if paired else [None] * len(inputs), strict=True)
        places = [known.setdefault(clean, len(known)) for clean in cleaned]
        return places, self._tokenized(list(known))

    def _tokenized(self, clean: Sequence[Clean]) -> _Prepared:
        texts = [text for text, _ in clean]
        pairs = [pair for _, pair in clean if pair is not None]
        return _Prepared(texts, self._tokenizer(texts, pairs or None))

    def _batches(self, texts: _Prepared) -> Iterator[tuple[list[int], list[Prediction]]]:
        """Yield batch by batch, short texts first: places in `texts` with their predictions."""
        tokens = texts.tokens
        if tokens.windows is not None and tokens.cut and not self._said_cut:
            self._said_cut = True
            _to_standard_error(
                f"warning: a text is longer than {MOST_WINDOWS} windows of "
                f"{self.description.max_length} tokens; of such texts the encoder reads the "
                "beginning (said once)"
            )
        told = tokens.has_other_than(self._tokenizer.uninformative_ids)

        def finished(
            batch: tuple[list[int], np.ndarray],
        ) -> tuple[list[int], list[Prediction]]:
            places, logits = batch
            known = told[places]
            if self._linear is not None:
                own = self._linear.logits([texts.texts[place] for place in places])
                known |= (own != self._linear.bias).any(axis=1)
                logits = self._linear.added(logits, own)
            probabilities = probabilities_of(logits, self.description, self.temperature)
            if (probabilities != probabilities).any():  # NaN; numpy is not imported here
                raise InputError(
                    "expected numbers of every text, found NaN: weights of the model are damaged; "
                    "fetch it or make it again",
                    place=self.name,
                )
            cut = tokens.was_cut[places].tolist()
            found = predictions_of(probabilities, cut, known.tolist(), self.description)
            return places, found

        # The linear part reads a batch while the engine computes the next ones.
        yield from worked_ahead(
            finished, logits_by_length(self._engine, tokens, range(tokens.texts))
        )


def _to_standard_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def name_of_model(path: str | Path) -> str:
    """`memos-1` for runs/finetune/memos-1/model, otherwise the last folder or the Hub id."""
    place = Path(path)
    if not place.is_dir():
        return str(path)
    place = place.resolve()
    return place.parent.name if place.name == "model" else place.name
