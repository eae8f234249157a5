"""Replace MLM: guess what stood where the generator put a token (Clark et al. 2020, 3.4)."""

from transformers import ElectraConfig

from malmoi.pretrain.model.flops import lm_head_flops
from malmoi.pretrain.objectives.context import EncoderPass, TokenLosses
from malmoi.pretrain.objectives.encoder_objective import EncoderObjective, Product
from malmoi.pretrain.objectives.masked_lm import encoder_masked_lm, lm_head_products
from malmoi.pretrain.objectives.watched import guessing


class ReplaceMLM(EncoderObjective):
    """Masked LM whose encoder never sees [MASK]."""

    needs_lm_head = True
    watched = guessing("discriminator_loss")

    def token_losses(self, run: EncoderPass) -> TokenLosses:
        """Cross entropy at the masked positions."""
        return encoder_masked_lm(run)

    def head_flops(self, config: ElectraConfig, masked: float) -> float:
        """The masked-LM head, at masked positions only."""
        return lm_head_flops(config, masked)

    def head_products(self, config: ElectraConfig, tokens: int, masked: int) -> list[Product]:
        """The masked-LM head, at masked positions only."""
        return lm_head_products(config, masked)

    def describe(self, row: dict[str, float]) -> str:
        """Loss, and how much was guessed right."""
        return f"encoder loss {row['discriminator_loss']:.3f} acc {row['encoder_accuracy']:.3f}"
