"""Which network learns when, and from what (Clark et al. 2020, Appendix F).

To add one: a subclass of `NetworkSchedule`, its line in `registry.SCHEDULES`, and its name in
`malmoi.pretrain.config.objective`. Legend: b sequences of this process, L tokens, V vocabulary
entries, N masked positions.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn import functional

from malmoi.pretrain.config.objective import Recipe
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.pretrain.objectives.context import StepContext
from malmoi.pretrain.objectives.generator import MaskedPredictions
from malmoi.pretrain.objectives.local_batch import LocalBatch
from malmoi.pretrain.objectives.replacing import sampling_logits
from malmoi.pretrain.objectives.watched import WatchedLoss, guessing

# Fast-ELECTRA (Dong et al. 2023, arXiv 2310.07347) lets the temperature decay exponentially; that
# what is left of it halves in every tenth of the run is an assumption.
_TEMPERATURE_HALVING = 0.1

_GENERATOR_LOSS = guessing("generator_loss")


@dataclass(frozen=True, kw_only=True)
class GeneratorPass:
    """What the generator made of a batch."""

    predictions: list[MaskedPredictions]
    """One for each head; the last one's are sampled. Empty where there is no generator."""
    loss: torch.Tensor
    """float32 []: masked-LM loss, summed over the heads."""
    shown_loss: torch.Tensor
    """float32 []: that of the head that is sampled, without gradient."""


@dataclass(frozen=True, kw_only=True)
class Reward:
    """What the discriminator made of the generator's samples."""

    samples: torch.Tensor
    """int64 [N]."""
    losses: torch.Tensor
    """float32 [b, L], without gradient: the discriminator's."""
    temperature: float
    """At which they were drawn."""


class NetworkSchedule:
    """Both networks learn at once, the generator by masked LM: `joint`, and what others change."""

    one_size: ClassVar[bool] = False
    """Whether one network starts from the other's weights."""
    takes_noise: ClassVar[bool] = True
    """Whether replacements may be noise instead of a generator's samples."""
    runs_discriminator: ClassVar[bool] = True
    """Whether the discriminator runs at all."""
    generator_guesses: ClassVar[bool] = True
    """Whether the generator learns by guessing, so that its loss has to fall."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def begin(self, pair: ElectraPair) -> None:
        """Freeze what no step may change, before the first step of a sitting."""

    def enter_stage(self, pair: ElectraPair, stage: int, fraction: float) -> int:
        """Make the networks ready for the next step.

        Args:
            stage: of the step before; 0 at the start.
            fraction: how much of the run is done.

        Returns:
            The stage of the step.
        """
        return stage

    def finish(self, pair: ElectraPair, stage: int) -> str:
        """Make the networks ready to be handed out. Returns a warning, or nothing."""
        return ""

    def trains_generator(self, stage: int) -> bool:
        """Whether the generator learns in this stage."""
        return True

    def trains_discriminator(self, stage: int) -> bool:
        """Whether the discriminator takes part in this stage."""
        return True

    def generator_loss(
        self, context: StepContext, batch: LocalBatch, generator: GeneratorPass, reward: Reward
    ) -> torch.Tensor | None:
        """What the generator learns from beside a discriminator; None: nothing."""
        return generator.loss

    def temperature_at(self, fraction: float) -> float:
        """The sampling temperature when `fraction` of the run is done."""
        recipe = self.recipe
        if recipe.first_temperature is None:
            return recipe.temperature
        left = 2.0 ** (-fraction / _TEMPERATURE_HALVING)
        return recipe.temperature + (recipe.first_temperature - recipe.temperature) * left

    def passes(self) -> tuple[float, float]:
        """What the networks' forward passes of a token are multiplied by to get a whole run's.

        Returns:
            Part of the run in which the discriminator learns (its backward pass is counted
            already), and passes of the generator, forward and backward, a mean over the run.
        """
        return 1.0, 2.0

    def watched(
        self, row: dict[str, float], objective: WatchedLoss, *, has_generator: bool
    ) -> WatchedLoss:
        """The loss that must not rise: a generator's that learns to guess, else the other.

        Args:
            row: of metrics.
            objective: the loss of the encoder's objective.
        """
        return _GENERATOR_LOSS if has_generator and self.generator_guesses else objective


class Joint(NetworkSchedule):
    """Both networks learn at once."""


class TwoStage(NetworkSchedule):
    """The generator alone; then the discriminator from its weights, while it stays as it is."""

    one_size = True
    takes_noise = False

    def enter_stage(self, pair: ElectraPair, stage: int, fraction: float) -> int:
        """On the way to stage 1 the generator's weights go over."""
        if stage == 0 and fraction >= self.recipe.first_stage:
            pair.start_discriminator_from_generator()
            stage = 1
        if stage == 1:
            pair.freeze_generator()
        return stage

    def finish(self, pair: ElectraPair, stage: int) -> str:
        """A run that was too short for its second stage hands out what the first has learnt."""
        if stage == 1:
            return ""
        pair.start_discriminator_from_generator()
        return (
            "the run ended before its second stage began, so the discriminator is a copy of the "
            "generator and has learnt nothing of its own; take a longer run or a smaller "
            "objective.first_stage"
        )

    def trains_generator(self, stage: int) -> bool:
        """In the first stage only."""
        return stage == 0

    def trains_discriminator(self, stage: int) -> bool:
        """In the second stage only."""
        return stage == 1

    def generator_loss(
        self, context: StepContext, batch: LocalBatch, generator: GeneratorPass, reward: Reward
    ) -> torch.Tensor | None:
        """None: beside the discriminator it is frozen."""
        return None

    def temperature_at(self, fraction: float) -> float:
        """It begins to fall with the second stage: the first draws no samples."""
        return super().temperature_at(max(0.0, fraction - self.recipe.first_stage))

    def passes(self) -> tuple[float, float]:
        """In the second stage the generator runs forward only, beside the discriminator."""
        return 1 - self.recipe.first_stage, 1 + self.recipe.first_stage

    def watched(
        self, row: dict[str, float], objective: WatchedLoss, *, has_generator: bool
    ) -> WatchedLoss:
        """The loss of the stage that the row is of."""
        return objective if row.get("discriminator_loss", 0) > 0 else _GENERATOR_LOSS


class Adversarial(NetworkSchedule):
    """The generator learns by policy gradient to mislead the discriminator."""

    takes_noise = False
    generator_guesses = False

    def generator_loss(
        self, context: StepContext, batch: LocalBatch, generator: GeneratorPass, reward: Reward
    ) -> torch.Tensor | None:
        """REINFORCE, by the discriminator's losses."""
        return reinforce_loss(context, batch, generator.predictions[0], reward)


class FrozenGenerator(NetworkSchedule):
    """A generator of another run draws, and never changes (Fast-ELECTRA)."""

    takes_noise = False
    generator_guesses = False

    def begin(self, pair: ElectraPair) -> None:
        """Freeze the generator."""
        pair.freeze_generator()

    def trains_generator(self, stage: int) -> bool:
        """Never."""
        return False

    def generator_loss(
        self, context: StepContext, batch: LocalBatch, generator: GeneratorPass, reward: Reward
    ) -> torch.Tensor | None:
        """None."""
        return None

    def passes(self) -> tuple[float, float]:
        """The generator's backward pass is saved."""
        return 1.0, 1.0


class FrozenDiscriminator(NetworkSchedule):
    """The generator alone, beside a discriminator that is trained already."""

    takes_noise = False
    runs_discriminator = False

    def begin(self, pair: ElectraPair) -> None:
        """Freeze the discriminator and what the generator shares with it."""
        pair.freeze_discriminator()

    def trains_discriminator(self, stage: int) -> bool:
        """Never."""
        return False

    def passes(self) -> tuple[float, float]:
        """The discriminator does not even run."""
        return 0.0, 2.0


def reinforce_loss(
    context: StepContext, batch: LocalBatch, predictions: MaskedPredictions, reward: Reward
) -> torch.Tensor:
    """REINFORCE: samples on which the discriminator did badly become likelier. -> float32 [].

    The paper's Appendix F rewards with the discriminator's loss at the masked position and
    learns a baseline; here the baseline is the batch's mean reward.
    """
    rewards = reward.losses.flatten()[batch.places]
    counted = predictions.counted
    number = context.total(counted).clamp(min=1)
    mean = context.add_up(torch.where(counted, rewards, 0.0).sum()) / number
    # The distribution that the samples came from: another's gradient would be biased.
    scores = sampling_logits(
        predictions.logits,
        batch.targets,
        temperature=reward.temperature,
        forbid_original=context.recipe.forbid_original,
    )
    log_probability = -functional.cross_entropy(scores, reward.samples, reduction="none")
    terms = -(rewards - mean) * log_probability
    return torch.where(counted, terms, 0.0).sum() / number
