"""The losses of one step, for every objective and schedule of `pretrain.config.objective`.

Legend: b sequences of this process, L tokens, V vocabulary entries, N masked positions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from pretrain.config.objective import DISCRIMINATING, Recipe
from pretrain.data.batches import Batch
from pretrain.model.networks import ElectraPair
from pretrain.objectives.replacing import (
    NUM_FREQUENCY_BINS,
    Guesses,
    Share,
    VocabularyTables,
    cross_entropies,
    draw_noise,
    draw_samples,
    guess,
    likeliest,
    mask_batch,
    put_in_place,
    sampling_logits,
)

COUNT_NAMES = (
    "masked",
    "guessed",
    "true_positive",
    "predicted_replaced",
    "replaced",
    "tokens",
    "encoder_places",
    "encoder_guessed",
)
# Fast-ELECTRA (Dong et al. 2023, arXiv 2310.07347) lets the temperature decay exponentially; that
# what is left of it halves in every tenth of the run is an assumption.
_TEMPERATURE_HALVING = 0.1
# 2^32 over the golden ratio: multiples of it lie far apart modulo 2^32. Between processes, whose
# seeds must not be those of the next steps.
SEED_STRIDE = 0x9E3779B9


@dataclass(kw_only=True)
class StepResult:
    """Losses and counts of one step, all tensors: reading them is left to the log interval.

    In a run of several processes, what is here is this process's part; the parts add up.
    """

    loss: torch.Tensor
    """What to call backward on."""
    bag_loss: torch.Tensor
    """How little [CLS] expects the words of its text; 0 where it is not asked."""
    correction_loss: torch.Tensor
    """How little the discriminator expects what stood at masked positions; 0 where it is not
    asked."""
    generator_loss: torch.Tensor
    """Masked-LM loss of the generator, or of the encoder with objective mlm."""
    discriminator_loss: torch.Tensor
    """Loss of the discriminator, or of the guesses of its encoder."""
    trains_discriminator: bool = True
    """False where the generator learns alone and in masked LM, where that loss is 0."""
    counts: torch.Tensor
    """int64 [8], see `COUNT_NAMES`."""
    unigram: torch.Tensor
    """float32 [2]: sum of what guessing the masked tokens by their frequency would lose, nats, and
    how many of them are guessed."""
    binned_loss: torch.Tensor
    """float32 [2, 5]: sums of the encoder's loss, and numbers of tokens it was taken at, by how
    common the original token is; all 0 while the generator learns alone."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where in the run a step stands."""

    fraction: float = 0.0
    """How much of the run is done, 0 to 1."""
    stage: int = 1
    """0 while a two-stage run trains its generator, else 1."""


def _identity(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A recipe with the vocabulary it works on. Call it on a batch to get the losses."""

    recipe: Recipe
    tables: VocabularyTables
    rank: int = 0
    world_size: int = 1
    add_up: Callable[[torch.Tensor], torch.Tensor] = _identity
    """Sum of a tensor over the processes, so that means are those of the whole batch."""
    mask_dtype: torch.dtype = torch.float32
    """Number format of the attention scores."""

    def __call__(
        self,
        pair: ElectraPair,
        batch: Batch,
        random: torch.Generator,
        moment: Moment | None = None,
    ) -> StepResult:
        """Losses of one batch: generator's + weight x discriminator's.

        Nothing flows from the discriminator into the generator through the samples; the two meet
        in what they share. All means are over the whole batch.

        Args:
            random: source of masks and samples, on the batch's device, alike in every process.
        """
        moment = moment or Moment()
        recipe = self.recipe
        share = mask_batch(
            batch,
            recipe,
            self.tables,
            random,
            fraction=mask_fraction_at(recipe, moment.fraction),
            rank=self.rank,
            world_size=self.world_size,
            mask_dtype=self.mask_dtype,
        )
        if recipe.objective == "mlm":
            return self._masked_lm(pair, share)
        guesses = self._guess(pair, share) if recipe.needs_generator else []
        generator_alone = moment.stage == 0 or recipe.schedule == "frozen-discriminator"
        trains_generator = generator_alone or recipe.schedule in ("joint", "adversarial")
        generator_losses = [
            guessed.losses.sum() / self._total(guessed.counted).clamp(min=1) for guessed in guesses
        ]
        generator_loss = (
            torch.stack(generator_losses).sum() if guesses else share.places.new_zeros(()).float()
        )
        counts = self._generator_counts(share, guesses)
        if generator_alone:
            return StepResult(
                loss=generator_loss,
                generator_loss=generator_losses[-1].detach(),
                discriminator_loss=torch.zeros_like(generator_loss.detach()),
                trains_discriminator=False,
                bag_loss=torch.zeros_like(generator_loss.detach()),
                correction_loss=torch.zeros_like(generator_loss.detach()),
                counts=counts,
                unigram=self._unigram(share),
                binned_loss=generator_loss.new_zeros((2, NUM_FREQUENCY_BINS)),
            )
        with torch.no_grad():
            samples = self._samples(share, guesses, random, moment.fraction)
            corrupted = put_in_place(share, samples)
        states = pair.discriminator.electra(corrupted, **share.inputs).last_hidden_state
        losses, weights, more, sentence_loss = self._encoder_losses(pair, share, states, corrupted)
        bag_loss = self._bag_loss(pair, share, states)
        correction_loss = self._correction_loss(pair, share, states, more)
        counts = counts + more
        weighted = (losses * weights).sum()
        weight = recipe.discriminator_weight * _risen(moment.fraction, recipe.weight_warmup)
        loss = weight * weighted
        if trains_generator and recipe.schedule == "adversarial":
            policy_loss = self._policy_loss(share, guesses[0], samples, losses, moment.fraction)
            loss = loss + policy_loss
        elif trains_generator:
            loss = loss + generator_loss
        return StepResult(
            loss=loss
            + recipe.sentence_weight * sentence_loss
            + recipe.bag_weight * bag_loss
            + recipe.correction_weight * correction_loss,
            bag_loss=bag_loss.detach(),
            correction_loss=correction_loss.detach(),
            generator_loss=generator_losses[-1].detach() if guesses else generator_loss,
            discriminator_loss=weighted.detach(),
            counts=counts,
            unigram=self._unigram(share),
            binned_loss=self._by_frequency(share, losses.detach(), weights),
        )

    def _total(self, mask: torch.Tensor) -> torch.Tensor:
        return self.add_up(mask.sum())

    def _guess(self, pair: ElectraPair, share: Share) -> list[Guesses]:
        boundary = self.recipe.generator_head == "sbo"
        if self.recipe.schedule == "frozen-generator":
            with torch.no_grad():
                return guess(pair, share, self.tables, span_boundary=boundary)
        return guess(pair, share, self.tables, span_boundary=boundary)

    def _samples(
        self,
        share: Share,
        guesses: list[Guesses],
        random: torch.Generator,
        fraction: float,
    ) -> torch.Tensor:
        recipe = self.recipe
        originals = share.input_ids.flatten()[share.places]
        noise_share = 0.0
        if recipe.unigram_fraction > 0:
            noise_share = 1.0
            if recipe.needs_generator:
                noise_share = max(0.0, 1 - fraction / recipe.unigram_fraction)
        noise = None
        if noise_share > 0:
            noise = draw_noise(
                self.tables.noise,
                share.noise_draws[:, 1],
                originals if recipe.forbid_original else None,
            )
            if not guesses:
                return noise
        samples = draw_samples(
            # The boundary head's guesses come last, where there are any.
            guesses[-1].logits,
            originals,
            share.draws,
            temperature=temperature_at(recipe, fraction),
            forbid_original=recipe.forbid_original,
            gumbel=self._own_source(random) if recipe.sampling == "gumbel" else None,
        )
        if noise is None:
            return samples
        return torch.where(share.noise_draws[:, 0] < noise_share, noise, samples)

    def _own_source(self, random: torch.Generator) -> torch.Generator:
        """Gumbel noise of this process's own.

        V draws a place are too many to be made for the whole batch in every process, and from one
        source the places of all processes would get the same noise.
        """
        if self.rank == 0:
            return random
        # Spread over 32 bits, all that the generator of a CPU reads of a seed.
        seed = random.initial_seed() + self.rank * SEED_STRIDE
        return torch.Generator(device=random.device).manual_seed(seed % 2**32)

    def _generator_counts(self, share: Share, guesses: list[Guesses]) -> torch.Tensor:
        with torch.no_grad():
            counts = share.places.new_zeros(len(COUNT_NAMES))
            counts[0] = share.is_place.sum()
            if guesses:
                targets = share.input_ids.flatten()[share.places]
                right = likeliest(guesses[-1].logits) == targets
                counts[1] = (right & guesses[-1].counted).sum()
            counts[5] = share.real.sum()
        return counts

    def _encoder_losses(
        self, pair: ElectraPair, share: Share, states: torch.Tensor, corrupted: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Losses of the discriminator by its states, and weights that add them up to their mean.

        Returns:
            float32 [b, L] losses, 0 where there is none; float32 [b, L] weights; int64 [8]
            counts to add; float32 [] sentence-level loss, 0 if there is none.
        """
        recipe = self.recipe
        counts = share.places.new_zeros(len(COUNT_NAMES))
        sentence_loss = states.new_zeros((), dtype=torch.float32)
        if recipe.objective in DISCRIMINATING:
            logits = pair.discriminator.discriminator_predictions(states).float()  # [b, L]
            labels = replaced_labels(share, corrupted, whole_spans=recipe.replaced_spans)
            losses = functional.binary_cross_entropy_with_logits(
                logits, labels.float(), reduction="none"
            )
            scope = share.real if recipe.objective == "rtd" else share.masked
            if recipe.sentence_weight > 0:
                # [CLS] answers for the whole text then, not for itself.
                scope = scope & (share.input_ids != self.tables.cls_id)
                sentence_loss = self._sentence_loss(share, corrupted, logits)
            _count_found(counts, logits, labels, scope)
            return losses, self._mean_weights(scope, share), counts, sentence_loss
        if recipe.objective == "replace-mlm":
            losses, scope = self._guess_with_encoder(pair, share, states, counts)
            return losses, self._mean_weights(scope, share), counts, sentence_loss
        losses = self._all_tokens(pair, share, states, corrupted, counts)
        return losses, self._mean_weights(share.real, share), counts, sentence_loss

    def _guess_with_encoder(
        self, pair: ElectraPair, share: Share, states: torch.Tensor, counts: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Cross entropy at the masked positions. -> float32 [b, L], bool [b, L]."""
        targets = share.input_ids.flatten()[share.places]
        logits = pair.encoder_lm_logits(states.flatten(0, 1)[share.places])
        guesses = cross_entropies(logits, targets, share.is_place, self.tables)
        with torch.no_grad():
            counts[6] = guesses.counted.sum()
            counts[7] = ((likeliest(guesses.logits) == targets) & guesses.counted).sum()
        none = guesses.losses.new_zeros(share.input_ids.numel())
        # Filled-up places add nothing, wherever they point.
        losses = none.index_add(0, share.places, guesses.losses)
        scope = none.index_add(0, share.places, guesses.counted.float()) > 0
        return losses.view_as(share.input_ids), scope.view_as(share.input_ids)

    def _correction_loss(
        self, pair: ElectraPair, share: Share, states: torch.Tensor, counts: torch.Tensor
    ) -> torch.Tensor:
        """Mean cross entropy of what stood at the masked positions, guessed from the corrupted
        text; 0 where it is not asked.

        Corrective language modelling (COCO-LM, Meng et al. 2021) without its copy mechanism (METRO,
        Bajaj et al. 2022).
        """
        if self.recipe.correction_weight == 0:
            return states.new_zeros((), dtype=torch.float32)
        losses, scope = self._guess_with_encoder(pair, share, states, counts)
        return losses.sum() / self._total(scope).clamp(min=1)

    def _all_tokens(
        self,
        pair: ElectraPair,
        share: Share,
        states: torch.Tensor,
        corrupted: torch.Tensor,
        counts: torch.Tensor,
    ) -> torch.Tensor:
        """All-tokens MLM: a mixture of copying the input and guessing. -> float32 [b, L].

        The paper (Section 3.4): with the copy probability D of a sigmoid layer, the output is
        D x (the input token) + (1 - D) x softmax. Here the sigmoid layer is the discriminator's
        own head, whose logit says "replaced", so that D = 1 - sigmoid.
        """
        replaced = pair.discriminator.discriminator_predictions(states).float()  # [b, L]
        logits = pair.encoder_lm_logits(states.flatten(0, 1)).float() + self.tables.bias
        targets = share.input_ids.flatten()
        log_guess = -functional.cross_entropy(logits, targets, reduction="none")
        log_guess = log_guess.view_as(replaced) + functional.logsigmoid(replaced)
        same = corrupted == share.input_ids
        log_copy = functional.logsigmoid(-replaced).masked_fill(~same, float("-inf"))
        # Special tokens can only be copied: guessing them is minus infinity, whose gradient
        # would be NaN.
        guessable = (self.tables.bias[targets] == 0).view_as(same)
        both = torch.logaddexp(log_copy, torch.where(guessable, log_guess, -1e4))
        losses = torch.where(share.real & (guessable | same), -both, 0.0)
        with torch.no_grad():
            _count_found(counts, replaced, ~same, share.real)
            right = (likeliest(logits) == targets) & share.masked.flatten()
            counts[6] = share.is_place.sum()
            counts[7] = right.sum()
        return losses

    def _mean_weights(self, scope: torch.Tensor, share: Share) -> torch.Tensor:
        """float32 [b, L] that make a sum the mean over `scope`: of tokens, or of texts' means."""
        if self.recipe.loss_mean == "tokens":
            return scope.float() / self._total(scope).clamp(min=1)
        sizes = scope.new_zeros(share.input_ids.numel() + 1, dtype=torch.float32)
        sizes = sizes.scatter_add(0, share.documents.flatten(), scope.flatten().float())
        # Document 0 is the padding.
        number = self._total(sizes[1:] > 0).clamp(min=1)
        per_token = scope.float() / sizes[share.documents].clamp(min=1)
        return per_token / number

    def _masked_lm(self, pair: ElectraPair, share: Share) -> StepResult:
        states = pair.discriminator.electra(share.masked_ids, **share.inputs).last_hidden_state
        counts = self._generator_counts(share, [])
        losses, scope = self._guess_with_encoder(pair, share, states, counts)
        counts[1] = counts[7]
        weights = self._mean_weights(scope, share)
        loss = (losses * weights).sum()
        bag_loss = self._bag_loss(pair, share, states)
        return StepResult(
            loss=loss + self.recipe.bag_weight * bag_loss,
            bag_loss=bag_loss.detach(),
            correction_loss=torch.zeros_like(loss.detach()),
            generator_loss=loss.detach(),
            discriminator_loss=torch.zeros_like(loss.detach()),
            trains_discriminator=False,
            counts=counts,
            unigram=self._unigram(share),
            binned_loss=self._by_frequency(share, losses.detach(), weights),
        )

    def _policy_loss(
        self,
        share: Share,
        guesses: Guesses,
        samples: torch.Tensor,
        losses: torch.Tensor,
        fraction: float,
    ) -> torch.Tensor:
        """REINFORCE: samples on which the discriminator did badly become likelier.

        The paper's Appendix F rewards with the discriminator's loss at the masked position and
        learns a baseline; here the baseline is the batch's mean reward.
        """
        rewards = losses.detach().flatten()[share.places]
        counted = guesses.counted
        number = self._total(counted).clamp(min=1)
        mean = self.add_up(torch.where(counted, rewards, 0.0).sum()) / number
        # Of the distribution that the samples came from: another's gradient would be biased.
        scores = sampling_logits(
            guesses.logits,
            share.input_ids.flatten()[share.places],
            temperature=temperature_at(self.recipe, fraction),
            forbid_original=self.recipe.forbid_original,
        )
        log_probability = -functional.cross_entropy(scores, samples, reduction="none")
        terms = -(rewards - mean) * log_probability
        return torch.where(counted, terms, 0.0).sum() / number

    def _sentence_loss(
        self, share: Share, corrupted: torch.Tensor, logits: torch.Tensor
    ) -> torch.Tensor:
        """Mean over texts of: does the logit at [CLS] say that anything was replaced?"""
        changed = (corrupted != share.input_ids).flatten().float()
        size = share.input_ids.numel() + 1
        per_text = changed.new_zeros(size).scatter_add(0, share.documents.flatten(), changed)
        is_cls = (share.input_ids == self.tables.cls_id) & share.real
        labels = (per_text[share.documents] > 0).float()
        losses = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
        return torch.where(is_cls, losses, 0.0).sum() / self._total(is_cls).clamp(min=1)

    def _bag_loss(self, pair: ElectraPair, share: Share, states: torch.Tensor) -> torch.Tensor:
        """Cross entropy of a text's own words under [CLS]'s guess, mean over the words.

        Of the first text in each row: in a batch of like lengths that is all of them; of packed
        rows the number of texts differs, and reading it would make the device wait.
        """
        if self.recipe.bag_weight == 0:
            return states.new_zeros((), dtype=torch.float32)
        logits = pair.bag_logits(states[:, 0]).float() + self.tables.bias  # [b, V]
        losses = -logits.log_softmax(dim=-1).gather(1, share.input_ids)  # [b, L]
        guessable = self.tables.bias[share.input_ids] == 0
        scope = share.real & guessable & (share.documents == share.documents[:, :1])
        return torch.where(scope, losses, 0.0).sum() / self._total(scope).clamp(min=1)

    def _unigram(self, share: Share) -> torch.Tensor:
        targets = share.input_ids.flatten()[share.places]
        guessed = (share.is_place & (self.tables.bias[targets] == 0)).float()
        return torch.stack([(self.tables.surprisal[targets] * guessed).sum(), guessed.sum()])

    def _by_frequency(
        self, share: Share, losses: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        tokens = share.input_ids.flatten()
        bins = self.tables.frequency_bin[tokens]
        # [CLS] and its like, which no text holds, are not rare but never replaced.
        in_scope = ((weights > 0).flatten() & (self.tables.bias[tokens] == 0)).float()
        sums = losses.new_zeros((2, NUM_FREQUENCY_BINS))
        sums[0].scatter_add_(0, bins, losses.flatten() * in_scope)
        sums[1].scatter_add_(0, bins, in_scope)
        return sums


def replaced_labels(
    share: Share, corrupted: torch.Tensor, *, whole_spans: bool = False
) -> torch.Tensor:
    """bool [b, L], True where a token is not what stood there.

    A sample that equals the original counts as original. With `whole_spans` all of a masked run
    counts as replaced when one of its tokens is (replaced-span detection).
    """
    changed = corrupted != share.input_ids
    if not whole_spans:
        return changed
    begins = share.masked.clone()
    begins[:, 1:] &= ~share.masked[:, :-1]
    # Runs are numbered within the row; 0 is what stands before the first.
    runs = begins.long().cumsum(1) * share.masked
    changed_in_run = torch.zeros_like(runs).scatter_add(1, runs, changed.long())
    return (changed_in_run.gather(1, runs) > 0) & share.masked


def mask_fraction_at(recipe: Recipe, fraction: float) -> float:
    """The masked fraction at a moment of the run, in steps of a hundredth.

    Every value is a shape of its own, so it changes in steps.
    """
    if recipe.last_mask_fraction is None:
        return recipe.mask_fraction
    change = (recipe.last_mask_fraction - recipe.mask_fraction) * min(1.0, fraction)
    return round(recipe.mask_fraction + change, 2)


def temperature_at(recipe: Recipe, fraction: float) -> float:
    """The sampling temperature at a moment of the run."""
    if recipe.first_temperature is None:
        return recipe.temperature
    if recipe.schedule == "two-stage":  # the first draws no samples
        fraction = max(0.0, fraction - recipe.first_stage)
    left = 2.0 ** (-fraction / _TEMPERATURE_HALVING)
    return recipe.temperature + (recipe.first_temperature - recipe.temperature) * left


def _risen(fraction: float, warmup: float) -> float:
    return min(1.0, fraction / warmup) if warmup > 0 else 1.0


def _count_found(
    counts: torch.Tensor, logits: torch.Tensor, labels: torch.Tensor, scope: torch.Tensor
) -> None:
    with torch.no_grad():
        predicted = (logits > 0) & scope
        counts[2] = (predicted & labels).sum()
        counts[3] = predicted.sum()
        counts[4] = (labels & scope).sum()
