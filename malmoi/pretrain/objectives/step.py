"""The losses of one step, whatever the objective and the schedule.

Legend: b sequences of this process, L tokens, N masked positions.
"""

from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property

import torch

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.data.batches import Batch
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives.context import COUNT_NAMES, Counts, EncoderPass, StepContext
from malmoi.pretrain.objectives.generator import MaskedPredictions, predict_masked
from malmoi.pretrain.objectives.local_batch import LocalBatch, mask_batch
from malmoi.pretrain.objectives.registry import ResolvedRecipe, resolve_recipe
from malmoi.pretrain.objectives.replacing import (
    blockwise_argmax,
    replace_tokens,
    sample_tokens,
    sample_unigram,
)
from malmoi.pretrain.objectives.schedules import GeneratorPass, Reward
from malmoi.pretrain.objectives.vocabulary import NUM_FREQUENCY_BINS

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
    generator_loss: torch.Tensor
    """Masked-LM loss of the generator, or of the encoder with objective mlm."""
    discriminator_loss: torch.Tensor
    """Loss of the discriminator, or of the guesses of its encoder."""
    auxiliary: dict[str, torch.Tensor] = field(default_factory=dict)
    """Losses beside it by name; none while the generator learns alone."""
    trains_discriminator: bool = True
    """False where the generator learns alone and in masked LM, where that loss is 0."""
    counts: torch.Tensor
    """int64 [10], see `COUNT_NAMES`; "guessed" is of the "hidden" ones."""
    hidden_losses: torch.Tensor
    """float32 [2], nats, sums over the tokens that [MASK] hides: what guessing them lost, 0 where
    no network guesses, and what guessing them by their frequency would lose."""
    binned_loss: torch.Tensor
    """float32 [2, 5]: sums of the encoder's loss, and numbers of tokens it was taken at, by how
    common the original token is; all 0 while the generator learns alone."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where in the run a step stands."""

    fraction: float = 0.0
    """How much of the run is done, 0 to 1."""
    stage: int = 1
    """0 while a two-stage run trains its generator, then 1. Other schedules do not ask."""


@dataclass(frozen=True, kw_only=True)
class TrainingObjective(StepContext):
    """A recipe with the vocabulary it works on. Call it on a batch to get the losses."""

    @cached_property
    def resolved(self) -> ResolvedRecipe:
        """The recipe's objective, schedule and auxiliary losses."""
        return resolve_recipe(self.recipe)

    def __call__(
        self,
        pair: ElectraPair,
        batch: Batch,
        random: torch.Generator,
        moment: Moment | None = None,
    ) -> StepResult:
        """Losses of one batch: generator's + weight x discriminator's + those beside it.

        Nothing flows from the discriminator into the generator through the samples; the two meet
        in what they share. All means are over the whole batch.

        Args:
            random: source of masks and samples, on the batch's device, alike in every process.
        """
        moment = moment or Moment()
        local = mask_batch(
            batch,
            self.recipe,
            self.tables,
            random,
            fraction=mask_fraction_at(self.recipe, moment.fraction),
            rank=self.rank,
            world_size=self.world_size,
            mask_dtype=self.mask_dtype,
        )
        generator = self._run_generator(pair, local, moment.stage)
        if not self.resolved.schedule.trains_discriminator(moment.stage):
            return StepResult(
                loss=generator.loss,
                generator_loss=generator.shown_loss,
                discriminator_loss=torch.zeros_like(generator.shown_loss),
                trains_discriminator=False,
                counts=_stack_counts(self._generator_counts(local, generator)),
                hidden_losses=self._hidden_losses(local, generator.predictions[-1].losses.detach()),
                binned_loss=generator.loss.new_zeros((2, NUM_FREQUENCY_BINS)),
            )
        samples = None
        input_ids = local.masked_ids
        if self.resolved.objective.replaces_tokens:
            with torch.no_grad():
                samples = self.sample_replacements(
                    local, generator.predictions, random, moment.fraction
                )
                input_ids = replace_tokens(local, samples)
        run = EncoderPass(
            context=self,
            pair=pair,
            batch=local,
            input_ids=input_ids,
            states=pair.discriminator.electra(input_ids, **local.inputs).last_hidden_state,
        )
        return self._encoder_result(run, generator, samples, moment.fraction)

    def _run_generator(self, pair: ElectraPair, batch: LocalBatch, stage: int) -> GeneratorPass:
        """Its guesses, if there is one, with a graph only where it learns."""
        none = torch.zeros((), device=batch.places.device)
        if not self.resolved.has_generator:
            return GeneratorPass(predictions=[], loss=none, shown_loss=none)
        learns = self.resolved.schedule.trains_generator(stage)
        with nullcontext() if learns else torch.no_grad():
            predictions = predict_masked(
                pair, batch, self.tables, span_boundary=self.recipe.generator_head == "sbo"
            )
            losses = [self.mean_over(each.losses, each.counted) for each in predictions]
            return GeneratorPass(
                predictions=predictions,
                loss=torch.stack(losses).sum(),
                shown_loss=losses[-1].detach(),
            )

    def sample_replacements(
        self,
        batch: LocalBatch,
        predictions: list[MaskedPredictions],
        random: torch.Generator,
        fraction: float,
    ) -> torch.Tensor:
        """Draw what stands at the masked positions: by the generator, by frequency, or by both.

        Args:
            predictions: of the generator's heads; the last one's are sampled.
            random: the step's source, for Gumbel noise.
            fraction: how much of the run is done.

        Returns:
            int64 [N].
        """
        recipe = self.recipe
        noise, noise_share = None, 0.0
        if recipe.unigram_fraction > 0:
            fades = self.resolved.has_generator
            noise_share = max(0.0, 1 - fraction / recipe.unigram_fraction) if fades else 1.0
        if noise_share > 0:
            noise = sample_unigram(
                self.tables.noise,
                batch.noise_draws[:, 1],
                batch.targets if recipe.forbid_original else None,
            )
            if not predictions:
                return noise
        samples = sample_tokens(
            # The boundary head's guesses come last, where there are any.
            predictions[-1].logits,
            batch.targets,
            batch.draws,
            temperature=self.resolved.schedule.temperature_at(fraction),
            forbid_original=recipe.forbid_original,
            gumbel=self._own_source(random) if recipe.sampling == "gumbel" else None,
        )
        if noise is None:
            return samples
        return torch.where(batch.noise_draws[:, 0] < noise_share, noise, samples)

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

    def _encoder_result(
        self,
        run: EncoderPass,
        generator: GeneratorPass,
        samples: torch.Tensor | None,
        fraction: float,
    ) -> StepResult:
        """Result of a step in which the encoder learns.

        The order in which losses are made and added up is that in which their gradients are, so
        it says the last bits of the weights.
        """
        objective, schedule = self.resolved.objective, self.resolved.schedule
        tokens = objective.token_losses(run)
        weights = self.mean_weights(tokens.scope, run.batch)
        beside = [(each, each.loss(run, tokens)) for each in self.resolved.auxiliaries]
        own = (tokens.losses * weights).sum()
        loss = objective.weight_at(fraction) * own
        if samples is not None and generator.predictions:
            reward = Reward(
                samples=samples,
                losses=tokens.losses.detach(),
                temperature=schedule.temperature_at(fraction),
            )
            theirs = schedule.generator_loss(self, run.batch, generator, reward)
            loss = loss if theirs is None else loss + theirs
        for each, its_loss in beside:
            loss = loss + each.weight * its_loss
        alone = not objective.replaces_tokens
        guesses = None
        if alone:
            guesses = tokens.losses.detach().flatten()[run.batch.places]
        elif generator.predictions:
            guesses = generator.predictions[-1].losses.detach()
        return StepResult(
            loss=loss,
            generator_loss=own.detach() if alone else generator.shown_loss,
            discriminator_loss=torch.zeros_like(own.detach()) if alone else own.detach(),
            trains_discriminator=not alone,
            auxiliary={each.name: its_loss.detach() for each, its_loss in beside},
            counts=_stack_counts(self._generator_counts(run.batch, generator) | run.counts),
            hidden_losses=self._hidden_losses(run.batch, guesses),
            binned_loss=self._loss_by_frequency(run.batch, tokens.losses.detach(), weights),
        )

    def _generator_counts(self, batch: LocalBatch, generator: GeneratorPass) -> Counts:
        with torch.no_grad():
            hidden = batch.hidden(self.tables)
            counts = {
                "masked": batch.is_place.sum(),
                "tokens": batch.real.sum(),
                "hidden": hidden.sum(),
                "commonest": (hidden & (batch.targets == self.tables.commonest)).sum(),
            }
            if generator.predictions:
                right = blockwise_argmax(generator.predictions[-1].logits) == batch.targets
                counts["guessed"] = (right & hidden).sum()
        return counts

    def _hidden_losses(self, batch: LocalBatch, losses: torch.Tensor | None) -> torch.Tensor:
        """Sums over the hidden tokens, see `StepResult`. float32 [N] or None -> float32 [2]."""
        hidden = batch.hidden(self.tables)
        by_frequency = self.tables.surprisal[batch.targets]
        own = torch.zeros_like(by_frequency) if losses is None else losses
        return torch.stack([torch.where(hidden, each, 0.0).sum() for each in (own, by_frequency)])

    def _loss_by_frequency(
        self, batch: LocalBatch, losses: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """Sums by how common a token is. float32 [b, L] twice -> float32 [2, 5]."""
        tokens = batch.input_ids.flatten()
        bins = self.tables.frequency_bin[tokens]
        # [CLS] and its like, which no text holds, are not rare but never replaced.
        in_scope = ((weights > 0).flatten() & self.tables.may_stand(tokens)).float()
        sums = losses.new_zeros((2, NUM_FREQUENCY_BINS))
        sums[0].scatter_add_(0, bins, losses.flatten() * in_scope)
        sums[1].scatter_add_(0, bins, in_scope)
        return sums


def _stack_counts(counts: Counts) -> torch.Tensor:
    """int64 [10] in the order of `COUNT_NAMES`."""
    zero = torch.zeros_like(counts["masked"])
    return torch.stack([counts.get(name, zero) for name in COUNT_NAMES])


def mask_fraction_at(recipe: Recipe, fraction: float) -> float:
    """The masked fraction at a moment of the run, in steps of a hundredth.

    Every value is a shape of its own, so it changes in steps.
    """
    if recipe.last_mask_fraction is None:
        return recipe.mask_fraction
    change = (recipe.last_mask_fraction - recipe.mask_fraction) * min(1.0, fraction)
    return round(recipe.mask_fraction + change, 2)
