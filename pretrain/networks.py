"""Generator and discriminator: stock transformers Electra classes that share their embeddings."""

from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from transformers import (
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    PreTrainedTokenizerFast,
)

from corpora.errors import InputError
from pretrain.saving import save_model
from pretrain.settings import PRESETS, Preset

# The paper's generator-to-discriminator width (Clark et al. 2020, Section 3.2: 1/4 to 1/2).
GENERATOR_FRACTION = 4
MAX_POSITIONS = 512


class ElectraPair(nn.Module):
    """The two networks of replaced-token detection, with one embedding module between them.

    Word, position and type embeddings and their LayerNorm are the same parameters in both
    (ELECTRA's released code; electra_pytorch's list of overlooked details), and so is the
    generator's output matrix.
    """

    def __init__(self, generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining) -> None:
        super().__init__()
        self.generator = generator
        self.discriminator = discriminator
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.generator_lm_head.weight = discriminator.electra.embeddings.word_embeddings.weight

    def set_attention(self, implementation: str) -> None:
        """Choose transformers' attention implementation for both networks."""
        for network in (self.generator, self.discriminator):
            network.set_attn_implementation(implementation)

    def save_networks(self, directory: Path, tokenizer: PreTrainedTokenizerFast) -> None:
        """Write `discriminator/` and `generator/` with the tokenizer, as stock checkpoints."""
        for name, network in (
            ("discriminator", self.discriminator),
            ("generator", self.generator),
        ):
            save_model(network, tokenizer, directory / name)

    def num_parameters(self) -> int:
        """Parameters of both networks, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())


def build_pair(
    preset: Preset, tokenizer: PreTrainedTokenizerFast, *, dropout: float = 0.0
) -> ElectraPair:
    """A pair with random weights; draw them under `torch.manual_seed`."""

    def config(fraction: int) -> ElectraConfig:
        hidden_size = preset.hidden_size // fraction
        return ElectraConfig(
            vocab_size=len(tokenizer),
            embedding_size=preset.embedding_size,
            hidden_size=hidden_size,
            num_hidden_layers=preset.num_layers,
            num_attention_heads=max(1, preset.num_heads // fraction),
            intermediate_size=4 * hidden_size,
            max_position_embeddings=MAX_POSITIONS,
            pad_token_id=tokenizer.pad_token_id,
            initializer_range=preset.initializer_range,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            tie_word_embeddings=True,
        )

    return ElectraPair(
        generator=ElectraForMaskedLM(config(GENERATOR_FRACTION)),
        discriminator=ElectraForPreTraining(config(1)),
    )


def _check_files(directory: str | Path) -> None:
    """Refuse a directory without both networks, before anything long is begun."""
    for name in ("generator", "discriminator"):
        for file in ("config.json", "model.safetensors"):
            path = Path(directory) / name / file
            if not path.is_file():
                raise InputError(
                    "expected --init random, skip-gram or a directory with discriminator/ and "
                    f"generator/, found {directory} and no {path}; give a run of pretrain/run.py "
                    "or a released checkpoint"
                )


def preset_of(directory: str | Path) -> Literal["tiny", "small", "base"]:
    """The preset whose learning rate and batch suit the checkpoint in `directory` best.

    Raises:
        InputError: no run or checkpoint is there.
    """
    _check_files(directory)
    try:
        config = ElectraConfig.from_pretrained(Path(directory) / "discriminator")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read the configuration in {directory}: {error}") from error
    if config.hidden_size > PRESETS["small"].hidden_size:
        return "base"
    return "tiny" if config.num_hidden_layers <= PRESETS["tiny"].num_layers else "small"


def load_pair(directory: str | Path) -> ElectraPair:
    """Load both networks of a run or a released checkpoint, to go on from them.

    Args:
        directory: holds `discriminator/` and `generator/`.

    Raises:
        InputError: one of the two is missing or damaged, keys do not fit, or the embeddings of
            the two have different shapes.
    """
    _check_files(directory)
    path = Path(directory)
    networks: list[Any] = []
    for name, network_class in (
        ("generator", ElectraForMaskedLM),
        ("discriminator", ElectraForPreTraining),
    ):
        folder = path / name
        load: Any = network_class.from_pretrained
        try:
            network, info = load(
                folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True
            )
        except Exception as error:  # safetensors raises its own type, transformers several
            raise InputError(f"cannot read the weights in {folder}: {error}") from error
        unfit = [*info["missing_keys"], *info["unexpected_keys"], *info["mismatched_keys"]]
        if unfit:
            raise InputError(
                f"expected the weights of {network_class.__name__} in {folder}, found missing or "
                f"unexpected keys such as {unfit[0]}; the file belongs to another architecture"
            )
        networks.append(network)
    generator, discriminator = networks
    shapes = [
        tuple(network.electra.embeddings.word_embeddings.weight.shape) for network in networks
    ]
    if shapes[0] != shapes[1]:
        raise InputError(
            f"expected generator and discriminator in {path} with the same embeddings, found "
            f"{shapes[0]} and {shapes[1]} (vocabulary, width)"
        )
    return ElectraPair(generator=generator, discriminator=discriminator)


def forward_flops_per_token(config: ElectraConfig, length: float) -> float:
    """Multiplications and additions of one forward pass through the encoder, per token.

    Counted from the matrix products (2 x inputs x outputs) and attention at `length` tokens;
    softmax, LayerNorm and look-ups are left out, as in the ELECTRA paper's own count.
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    layer = 2 * (4 * hidden * hidden + 2 * hidden * inner) + 4 * hidden * length
    projection = 2 * config.embedding_size * hidden
    if config.embedding_size == hidden:
        projection = 0
    return float(config.num_hidden_layers * layer + projection)
