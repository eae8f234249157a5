"""What a run learns.

The names are the paper's (Clark et al. 2020, "ELECTRA"): Section 3.4 and Table 5 for the
objectives, Appendix F for the schedules.
"""

from dataclasses import dataclass
from typing import Literal

Objective = Literal["rtd", "mlm", "electra-15", "replace-mlm", "all-tokens-mlm"]
Schedule = Literal["joint", "two-stage", "adversarial", "frozen-generator", "frozen-discriminator"]
Masking = Literal["token", "word", "span", "rare"]
GeneratorHead = Literal["mlm", "sbo"]
Sampling = Literal["inverse", "gumbel"]
Sharing = Literal["none", "word", "instance", "gdes", "all"]

# Width of the generator as a fraction of the discriminator's (paper: 1/4 to 1/2).
GENERATOR_SIZE = 0.25
# Objectives that end in the discriminator's own head, which says replaced or original.
DISCRIMINATING = ("rtd", "electra-15")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one step turns a batch into losses."""

    objective: Objective = "rtd"
    """rtd: replaced or original, at every token (ELECTRA). electra-15: the same at masked
    positions only. replace-mlm: guess what stood at positions where the generator put a token.
    all-tokens-mlm: guess what stood everywhere, with a copy mechanism. mlm: guess what [MASK]
    hides (BERT)."""
    schedule: Schedule = "joint"
    """joint: both networks at once. two-stage: the generator alone, then the discriminator from
    its weights while it stays as it is. adversarial: the generator learns by policy gradient to
    mislead. frozen-generator: a trained one of another run, never changed (Fast-ELECTRA).
    frozen-discriminator: the generator alone, beside a discriminator that is trained already."""
    masking: Masking = "token"
    """What is masked together: tokens; whole words; spans of geometric length (SpanBERT); rare
    tokens more often."""
    replaced_spans: bool = False
    """With span masking: all tokens of a masked span count as replaced when one of them is."""
    generator_head: GeneratorHead = "mlm"
    """mlm: from the masked position's state. sbo: from the span's two boundaries (SpanBERT)."""
    sampling: Sampling = "inverse"
    """How a token is drawn from the softmax: by inverting its cumulative sum, or Gumbel-max (the
    paper's code). One distribution; on a CPU the first is faster."""
    temperature: float = 1.0
    """Divides the generator's logits before a token is drawn (paper: 1)."""
    first_temperature: float | None = None
    """Temperature at the start, which falls to `temperature` by exponential decay
    (Fast-ELECTRA); None: constant."""
    forbid_original: bool = False
    """Never draw the token that stood there (tried in the paper, not better)."""
    mask_fraction: float = 0.15
    """Fraction of a text's tokens that is masked."""
    last_mask_fraction: float | None = None
    """The fraction at the end of the run, approached linearly; None: constant."""
    kept_fraction: float = 0.15
    """Fraction of the masked positions that keep their token in the generator's input."""
    random_fraction: float = 0.0
    """Fraction of them that get a random token (BERT: 0.1)."""
    discriminator_weight: float = 50.0
    """Weight of the discriminator's loss against the generator's (paper: lambda, 50)."""
    weight_warmup: float = 0.0
    """Fraction of the run over which the discriminator's weight rises from 0."""
    sentence_weight: float = 0.0
    """Weight of a loss on [CLS]: was anything in this text replaced? (tried in the paper)."""
    unchanged_fraction: float = 0.2
    """With it, the fraction of the texts that are left as they are, masks included; without, none.
    (0.2 in the paper's negative results; else nearly every text would have something replaced)."""
    bag_weight: float = 0.0
    """Weight of a loss by which [CLS] guesses all words of its text, as a paragraph vector does
    (Le and Mikolov 2014, PV-DBOW); 0: none. In a packed batch the first text of each row."""
    correction_weight: float = 0.0
    """Weight of a loss by which the discriminator also guesses what stood at the masked positions,
    from the corrupted text: COCO-LM's corrective language modelling (Meng et al. 2021, arXiv
    2102.08473) without its copy mechanism, as in METRO (Bajaj et al. 2022, arXiv 2204.06644)."""
    unigram_fraction: float = 0.0
    """Fraction of the run over which replacements change from unigram noise to the generator's
    samples, linearly; 1: noise only, and no generator is trained."""
    first_stage: float = 0.5
    """Fraction of a two-stage run that trains the generator."""
    loss_mean: Literal["tokens", "texts"] = "tokens"
    """The discriminator's loss is the mean over all real tokens of the batch, or over each text
    first."""

    @property
    def needs_generator(self) -> bool:
        """Whether a generator network takes part."""
        return self.objective != "mlm" and self.unigram_fraction < 1
