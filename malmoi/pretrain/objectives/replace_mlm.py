"""Replace MLM: guess what stood where the generator put a token (Clark et al. 2020, 3.4)."""

from malmoi.pretrain.objectives.context import EncoderPass, TokenLosses
from malmoi.pretrain.objectives.masked_lm import GuessesAtMasks, encoder_masked_lm
from malmoi.pretrain.objectives.watched import guessing


class ReplaceMLM(GuessesAtMasks):
    """Masked LM whose encoder never sees [MASK]."""

    watched = guessing("discriminator_loss")

    def token_losses(self, run: EncoderPass) -> TokenLosses:
        """Cross entropy at the masked positions."""
        return encoder_masked_lm(run)

    def describe(self, row: dict[str, float]) -> str:
        """Loss, and how much was guessed right."""
        return f"encoder loss {row['discriminator_loss']:.3f} acc {row['encoder_accuracy']:.3f}"
