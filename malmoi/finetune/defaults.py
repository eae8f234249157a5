"""What a run takes where nobody gives a number and the encoder or the texts decide it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Learning rates of a fine-tuning.

    Attributes:
        learning_rate: the highest, of the head.
        layer_decay: of a layer's against that of the layer above.
    """

    learning_rate: float
    layer_decay: float


# An encoder of up to so many units is fine-tuned as ELECTRA's small one (ELECTRA paper, Appendix
# B), a wider one as a base one (KcELECTRA's fine-tuning of base).
SMALL_WIDTH = 256
SMALL = Rates(learning_rate=3e-4, layer_decay=0.8)
WIDE = Rates(learning_rate=5e-5, layer_decay=1.0)

# Passes by the number of texts. ELECTRA paper, Appendix B: 10 for its small data sets, 3 for the
# others; between them as many as teach so many texts in all (docs/decisions/finetune.md).
MOST_EPOCHS, FEWEST_EPOCHS, LEARNT_IN_ALL = 10, 3, 200_000

# Texts of a training fold that choose the thresholds of `multi`, where nothing else is said.
THRESHOLD_FRACTION = 0.1

# Where the key of a chat model is asked for.
OPENAI_URL = "https://api.openai.com/v1"


def default_rates(hidden_size: int, *, random_weights: bool = False) -> Rates:
    """By the width of an encoder; random weights have nothing that lower layers should keep."""
    rates = SMALL if hidden_size <= SMALL_WIDTH else WIDE
    if random_weights:
        return Rates(learning_rate=rates.learning_rate, layer_decay=1.0)
    return rates


def default_epochs(texts: int) -> int:
    """Passes over so many labelled texts."""
    return max(FEWEST_EPOCHS, min(MOST_EPOCHS, round(LEARNT_IN_ALL / max(texts, 1))))
