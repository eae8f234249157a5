"""The objectives, schedules and auxiliary losses by name, and what a recipe makes of them."""

from dataclasses import dataclass
from typing import Any

from malmoi.pretrain.config.objective import Recipe, Sharing
from malmoi.pretrain.model.networks import PairShape
from malmoi.pretrain.objectives.all_tokens_mlm import AllTokensMLM
from malmoi.pretrain.objectives.auxiliary import (
    AuxiliaryLoss,
    BagOfWords,
    CorrectiveLM,
    SentenceDetection,
)
from malmoi.pretrain.objectives.encoder_objective import EncoderObjective
from malmoi.pretrain.objectives.masked_lm import MaskedLM
from malmoi.pretrain.objectives.replace_mlm import ReplaceMLM
from malmoi.pretrain.objectives.replaced_token_detection import (
    ReplacedMaskedTokenDetection,
    ReplacedTokenDetection,
)
from malmoi.pretrain.objectives.schedules import (
    Adversarial,
    FrozenDiscriminator,
    FrozenGenerator,
    Joint,
    NetworkSchedule,
    TwoStage,
)
from malmoi.pretrain.objectives.watched import WatchedLoss

OBJECTIVES: dict[str, type[EncoderObjective]] = {
    "rtd": ReplacedTokenDetection,
    "electra-15": ReplacedMaskedTokenDetection,
    "mlm": MaskedLM,
    "replace-mlm": ReplaceMLM,
    "all-tokens-mlm": AllTokensMLM,
}
SCHEDULES: dict[str, type[NetworkSchedule]] = {
    "joint": Joint,
    "two-stage": TwoStage,
    "adversarial": Adversarial,
    "frozen-generator": FrozenGenerator,
    "frozen-discriminator": FrozenDiscriminator,
}
# Losses are added up in this order, so it says the last bits of the weights.
AUXILIARY_LOSSES: tuple[type[AuxiliaryLoss], ...] = (SentenceDetection, BagOfWords, CorrectiveLM)


@dataclass(frozen=True, kw_only=True)
class ResolvedRecipe:
    """A recipe and what its names stand for."""

    recipe: Recipe
    objective: EncoderObjective
    schedule: NetworkSchedule
    auxiliaries: tuple[AuxiliaryLoss, ...]
    """Those with a weight."""

    @property
    def has_generator(self) -> bool:
        """Whether a generator network takes part."""
        return self.objective.replaces_tokens and self.recipe.unigram_fraction < 1

    @property
    def guesses_masked(self) -> bool:
        """Whether a network guesses what [MASK] hides: a generator, or a masked-LM encoder."""
        return self.has_generator or not self.objective.replaces_tokens

    @property
    def encoder_guesses(self) -> bool:
        """Whether the encoder that is handed out guesses tokens."""
        corrects = any(isinstance(each, CorrectiveLM) for each in self.auxiliaries)
        return self.objective.needs_lm_head or corrects

    def pair_shape(
        self, *, sharing: Sharing, generator_size: float, generator_layers: int | None
    ) -> PairShape:
        """The networks and heads that are needed, of the size and sharing given."""
        heads: dict[str, Any] = {each.head: True for each in self.auxiliaries if each.head}
        return PairShape(
            sharing=sharing,
            generator_size=generator_size,
            generator_layers=generator_layers,
            with_generator=self.has_generator,
            span_boundary_head=self.recipe.generator_head == "sbo",
            encoder_lm_head=self.objective.needs_lm_head,
            one_size=self.schedule.one_size,
            **heads,
        )

    def watched(self, row: dict[str, float]) -> WatchedLoss:
        """The loss of a row of metrics that must not rise."""
        own = self.objective.watched
        if self.recipe.discriminator_weight == 0:
            own = next((each.watched for each in self.auxiliaries if each.watched), own)
        return self.schedule.watched(row, own, has_generator=self.has_generator)

    def guessing_network(self) -> str:
        """Which network `generator_loss` is of, if it has to fall below guessing by frequency."""
        if self.objective.watched.key == "generator_loss":
            return "encoder"
        return "generator" if self.has_generator and self.schedule.generator_guesses else ""

    def describe(self, row: dict[str, float]) -> str:
        """What the progress line says of a row of metrics."""
        parts = []
        if self.has_generator:
            parts.append(
                f"generator loss {row['generator_loss']:.3f} acc {row['generator_accuracy']:.3f}"
            )
        if self.objective.watched.key in row:  # not while the generator learns alone
            parts.append(self.objective.describe(row))
        # Losses at tokens first, as the objective's is.
        beside = sorted(self.auxiliaries, key=lambda each: each.at_cls)
        beside = [each for each in beside if each.name in row]
        parts += [text for each in beside if (text := each.describe(row))]
        return "  ".join(parts)


def resolve_recipe(recipe: Recipe) -> ResolvedRecipe:
    """Look up what a recipe names."""
    weights = [(each, each.weight_in(recipe)) for each in AUXILIARY_LOSSES]
    return ResolvedRecipe(
        recipe=recipe,
        objective=OBJECTIVES[recipe.objective](recipe),
        schedule=SCHEDULES[recipe.schedule](recipe),
        auxiliaries=tuple(each(weight) for each, weight in weights if weight > 0),
    )
