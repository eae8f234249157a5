"""Generator and discriminator: stock transformers Electra classes, and what they share.

Legend: B sequences, L tokens, H width of the discriminator, E width of the embeddings, V entries.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import (
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    PreTrainedTokenizerFast,
)
from transformers.models.electra.modeling_electra import ElectraGeneratorPredictions

from malmoi.errors import InputError
from malmoi.model_folders import discriminator_folder
from malmoi.pretrain.config.defaults import Preset
from malmoi.pretrain.config.objective import GENERATOR_SIZE, Sharing
from malmoi.pretrain.model.starting_checkpoint import config_in, discriminator_config
from malmoi.transformers_models import fill_token_types, quiet_transformers, save_model

MAX_POSITIONS = 512
# What a user who fine-tunes the released directory expects to find in its config.json.
_EXPORTED_DROPOUT = 0.1
# Longest run of masked tokens whose places inside it are told apart (spans are at most 10 long,
# but two may touch).
_MAX_SPAN_PLACES = 32
# Smallest generator width.
_LEAST_WIDTH = 8


class GradientDisentangledEmbedding(nn.Module):
    """The generator's embedding, cut off from the gradient, plus a difference of its own.

    DeBERTaV3 (He et al. 2021, Section 3.2): both networks profit from the generator's table, but
    the discriminator's gradients change only the difference, which starts at zero.
    """

    def __init__(self, base: nn.Embedding) -> None:
        super().__init__()
        # In a tuple, so that the base is not registered as a parameter of this module too.
        self._base = (base,)
        self.delta = nn.Parameter(torch.zeros_like(base.weight))
        self.padding_idx = base.padding_idx

    @property
    def weight(self) -> torch.Tensor:
        """float32 [rows, E]: what a stock embedding would hold."""
        return self._base[0].weight.detach() + self.delta

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows of the sum. int64 [...] -> float32 [..., E]."""
        base = functional.embedding(ids, self._base[0].weight.detach())
        return base + functional.embedding(ids, self.delta, self.padding_idx)


class SpanBoundaryHead(nn.Module):
    """Guesses a masked token from the two tokens around its span and its place in it.

    SpanBERT (Joshi et al. 2020, Section 3.2): two layers of width E with GELU and LayerNorm over
    [left boundary; right boundary; place]. What comes out goes through the tied output matrix.
    """

    def __init__(self, config: ElectraConfig) -> None:
        super().__init__()
        width = config.embedding_size
        self.places = nn.Embedding(_MAX_SPAN_PLACES, width)
        self.layers = nn.Sequential(
            nn.Linear(2 * config.hidden_size + width, width),
            nn.GELU(),
            nn.LayerNorm(width, eps=config.layer_norm_eps),
            nn.Linear(width, width),
            nn.GELU(),
            nn.LayerNorm(width, eps=config.layer_norm_eps),
        )
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=config.initializer_range)

    def forward(
        self, left: torch.Tensor, right: torch.Tensor, offsets: torch.Tensor
    ) -> torch.Tensor:
        """[N, generator width] twice and int64 [N] -> [N, E]."""
        places = self.places(offsets.clamp(max=_MAX_SPAN_PLACES - 1))
        out: torch.Tensor = self.layers(torch.cat([left, right, places], dim=-1))
        return out


@dataclass(frozen=True, kw_only=True)
class PairShape:
    """What is built beside the discriminator, and what the two have in common."""

    sharing: Sharing = "instance"
    """none; word: word and position embeddings; instance: the whole embedding module, its type
    embeddings and LayerNorm too (ELECTRA's code); gdes: as word, without the discriminator's
    gradients (DeBERTaV3); all: all of the encoder."""
    generator_size: float = GENERATOR_SIZE
    """Width of the generator as a fraction of the discriminator's."""
    generator_layers: int | None = None
    """Its layers; None: as many as the discriminator has."""
    with_generator: bool = True
    """False: masked-LM alone or noise from unigram counts need none."""
    span_boundary_head: bool = False
    """SpanBERT's head beside the generator's own."""
    encoder_lm_head: bool = False
    """A masked-LM head on the discriminator's encoder, for the objectives that guess with it."""
    correction_head: bool = False
    """The same head where it guesses beside the discriminator's own: it is not handed out."""
    bag_head: bool = False
    """A head on [CLS] that guesses the words of the text; it is not handed out."""
    one_size: bool = False
    """Whether one network will start from the other's weights, as in two stages."""


class ElectraPair(nn.Module):
    """The networks of one run.

    `generator` is None where the objective has no use for one. `lm_predictions` maps the
    discriminator's states to the width of the embeddings, for objectives that guess tokens with
    it and for corrections; the output matrix is its own word embeddings. `bag_predictions` does so
    at [CLS].
    """

    def __init__(
        self,
        generator: ElectraForMaskedLM | None,
        discriminator: ElectraForPreTraining,
        shape: PairShape | None = None,
    ) -> None:
        super().__init__()
        self.generator = generator
        self.discriminator = discriminator
        self.shape = shape or PairShape()
        if generator is not None:
            self._share(generator)
        config = discriminator.config
        guesses = self.shape.encoder_lm_head or self.shape.correction_head
        self.lm_predictions = _new_predictions(config) if guesses else None
        self.lm_bias = nn.Parameter(torch.zeros(config.vocab_size)) if guesses else None
        self.bag_predictions = _new_predictions(config) if self.shape.bag_head else None
        self.span_head = (
            SpanBoundaryHead(generator.config)
            if generator is not None and self.shape.span_boundary_head
            else None
        )

    def _share(self, generator: ElectraForMaskedLM) -> None:
        ours, sharing = self.discriminator.electra, self.shape.sharing
        theirs = generator.electra
        if sharing == "all":
            generator.electra = ours
        elif sharing == "instance":
            theirs.embeddings = ours.embeddings
        elif sharing != "none":
            for name in ("word_embeddings", "position_embeddings"):
                base = getattr(theirs.embeddings, name)
                if sharing == "gdes":
                    setattr(ours.embeddings, name, GradientDisentangledEmbedding(base))
                else:
                    # The discriminator's stays, as with all other sharings: it is what is kept.
                    base.weight = getattr(ours.embeddings, name).weight
        generator.generator_lm_head.weight = generator.electra.embeddings.word_embeddings.weight

    def word_tables(self) -> list[torch.Tensor]:
        """The word embeddings, float32 [V, E] each: where a warm start belongs.

        One table if the networks share it, two if they share nothing. A gradient-disentangled
        difference is no table of its own.
        """
        modules = [n.electra.embeddings.word_embeddings for n in self.networks().values()]
        tables = [module.weight for module in modules if isinstance(module, nn.Embedding)]
        return list({id(table): table for table in tables}.values())

    def encoder_lm_logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Guesses of the discriminator's encoder. [N, H] -> [N, V]."""
        assert self.lm_predictions is not None
        weight = self.discriminator.electra.embeddings.word_embeddings.weight
        return functional.linear(self.lm_predictions(hidden), weight, self.lm_bias)

    def bag_logits(self, cls_states: torch.Tensor) -> torch.Tensor:
        """What words [CLS] expects in its text. [b, H] -> [b, V]."""
        assert self.bag_predictions is not None
        weight = self.discriminator.electra.embeddings.word_embeddings.weight
        return functional.linear(self.bag_predictions(cls_states), weight)

    def start_discriminator_from_generator(self) -> None:
        """Copy the generator's encoder into the discriminator's (paper, Section 3.2)."""
        assert self.generator is not None
        self.discriminator.electra.load_state_dict(self.generator.electra.state_dict())

    def freeze_generator(self) -> None:
        """Let no step change the generator any more."""
        assert self.generator is not None
        for parameter in self.generator.parameters():
            parameter.requires_grad_(False)
        self.train(self.training)

    def train(self, mode: bool = True) -> "ElectraPair":
        """As of any module, but that a frozen generator has no dropout."""
        super().train(mode)
        if self.generator is not None and not any(
            parameter.requires_grad for parameter in self.generator.parameters()
        ):
            self.generator.eval()
        return self

    def freeze_discriminator(self) -> None:
        """Let no step change the discriminator any more, nor what the generator shares with it."""
        for parameter in self.discriminator.parameters():
            parameter.requires_grad_(False)

    def networks(self) -> dict[str, Any]:
        """The stock networks by name."""
        named = {"discriminator": self.discriminator}
        return named if self.generator is None else named | {"generator": self.generator}

    def set_attention(self, implementation: str) -> None:
        """Choose transformers' attention implementation for both networks."""
        for network in self.networks().values():
            network.set_attn_implementation(implementation)

    def set_dropout(self, fraction: float) -> None:
        """Change the dropout of both networks."""
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = fraction

    def save_networks(self, directory: Path, tokenizer: PreTrainedTokenizerFast) -> None:
        """Write `discriminator/` and `generator/` with the tokenizer, as stock checkpoints.

        Where the encoder's objective is masked LM and there is no generator, `generator/` is the
        encoder with that head.
        """
        networks = self.networks()
        if self.generator is None and self.shape.encoder_lm_head:
            networks["generator"] = self._encoder_as_masked_lm()
        with self._as_stock(networks):
            for name, network in networks.items():
                save_model(network, tokenizer, directory / name)

    def _encoder_as_masked_lm(self) -> ElectraForMaskedLM:
        assert self.lm_predictions is not None and self.lm_bias is not None
        network = ElectraForMaskedLM(self.discriminator.config)
        network.electra = self.discriminator.electra
        network.generator_predictions = self.lm_predictions
        head: Any = network.generator_lm_head
        head.weight = self.discriminator.electra.embeddings.word_embeddings.weight
        head.bias = self.lm_bias
        return network

    @contextmanager
    def _as_stock(self, networks: dict[str, Any]) -> Iterator[None]:
        """Fold gradient-disentangled embeddings, and name the usual dropout in the configs."""
        embeddings = self.discriminator.electra.embeddings
        folded = {
            name: module
            for name, module in embeddings.named_children()
            if isinstance(module, GradientDisentangledEmbedding)
        }
        fields = ("hidden_dropout_prob", "attention_probs_dropout_prob")
        before = [(n, f, getattr(n.config, f)) for n in networks.values() for f in fields]
        for name, module in folded.items():
            stock = nn.Embedding.from_pretrained(
                module.weight.detach(), padding_idx=module.padding_idx
            )
            setattr(embeddings, name, stock)
        for network, field, _ in before:
            setattr(network.config, field, _EXPORTED_DROPOUT)
        try:
            yield
        finally:
            for name, module in folded.items():
                setattr(embeddings, name, module)
            for network, field, value in before:
                setattr(network.config, field, value)

    def num_parameters(self) -> int:
        """Parameters of all networks, shared ones counted once."""
        return sum(parameter.numel() for parameter in self.parameters())


def _new_predictions(config: ElectraConfig) -> ElectraGeneratorPredictions:
    predictions = ElectraGeneratorPredictions(config)
    nn.init.normal_(predictions.dense.weight, std=config.initializer_range)
    nn.init.zeros_(predictions.dense.bias)
    return predictions


def build_pair(
    preset: Preset,
    tokenizer: PreTrainedTokenizerFast,
    *,
    shape: PairShape | None = None,
    dropout: float = 0.0,
) -> ElectraPair:
    """A pair with random weights; draw them under `torch.manual_seed`.

    Raises:
        InputError: the generator's width is not a whole number of attention heads.
    """
    shape = shape or PairShape()
    config = ElectraConfig(
        vocab_size=len(tokenizer),
        embedding_size=preset.embedding_size,
        hidden_size=preset.hidden_size,
        num_hidden_layers=preset.num_layers,
        num_attention_heads=preset.num_heads,
        intermediate_size=4 * preset.hidden_size,
        max_position_embeddings=MAX_POSITIONS,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=preset.initializer_range,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        tie_word_embeddings=True,
    )
    generator = _new_generator(config, shape) if shape.with_generator else None
    return ElectraPair(generator, ElectraForPreTraining(config), shape)


def check_generator_size(source: Preset | Path, shape: PairShape, *, asked: bool = False) -> None:
    """Refuse a size that the generator cannot have, before anything long is begun.

    Whether there will be a generator is not known by then, so defaults pass.

    Args:
        source: the preset of new networks, or the directory of those to go on from.
        shape: what is wanted.
        asked: whether somebody chose the size, which may be the default's.

    Raises:
        InputError: naming the size and what it could be.
    """
    plain = (shape.generator_size, shape.generator_layers) == (GENERATOR_SIZE, None)
    if plain and not asked and not shape.one_size and shape.sharing != "all":
        return
    if isinstance(source, Preset):
        _generator_width(source.hidden_size, source.num_heads, shape)
        return
    discriminator = discriminator_config(source)
    generator = source / "generator"
    if generator.is_dir():
        _check_sizes(source, config_in(generator, source), discriminator, shape, asked=asked)
    else:
        _generator_width(discriminator.hidden_size, discriminator.num_attention_heads, shape)


def _share_of(hidden_size: int, num_heads: int, size: float) -> tuple[int, int]:
    """Width and heads at a fraction of a network's; whether they go together is not looked at."""
    return round(hidden_size * size), max(1, round(num_heads * size))


def _generator_width(hidden_size: int, num_heads: int, shape: PairShape) -> tuple[int, int]:
    """Width and heads of a generator beside a discriminator of these."""
    width, heads = _share_of(hidden_size, num_heads, shape.generator_size)
    if width % heads or width < _LEAST_WIDTH:
        sizes = {"0.25": 1 / 4, "0.3333": 1 / 3, "0.5": 1 / 2, "1": 1.0}
        fit = []
        for name, size in sizes.items():
            other, its_heads = _share_of(hidden_size, num_heads, size)
            if other % its_heads == 0 and other >= _LEAST_WIDTH:
                fit.append(name)
        raise InputError(
            "expected generator.size so that {hidden_size} x it can be split into heads of about "
            "{width}, found {size:g}; take {fit}",
            hidden_size=hidden_size,
            width=hidden_size // num_heads,
            size=shape.generator_size,
            fit=" or ".join(fit),
        )
    return width, heads


def _new_generator(discriminator: ElectraConfig, shape: PairShape) -> ElectraForMaskedLM:
    width, heads = _generator_width(
        discriminator.hidden_size, discriminator.num_attention_heads, shape
    )
    config = copy.deepcopy(discriminator)
    config.hidden_size, config.num_attention_heads = width, heads
    # As the discriminator has it: four times the width in the paper, not in every checkpoint.
    config.intermediate_size = round(
        discriminator.intermediate_size * width / discriminator.hidden_size
    )
    config.num_hidden_layers = shape.generator_layers or discriminator.num_hidden_layers
    config.tie_word_embeddings = True
    return ElectraForMaskedLM(config)


def load_pair(directory: str | Path, shape: PairShape | None = None) -> ElectraPair:
    """Load both networks of a run or a released checkpoint, to go on from them.

    Without `generator/`, as a run with noise alone leaves it, a generator that is needed starts
    from the discriminator's embeddings and random layers, of `one_size` from its layers too.

    Args:
        directory: holds `discriminator/`, or is one, and perhaps `generator/`.
        shape: what the two are to share from here on; without `with_generator` the generator's
            weights serve as the masked-LM head where one is wanted.

    Raises:
        InputError: the discriminator is missing, one of the two is damaged, keys do not fit, or
            the two are not of the sizes that `shape` says or cannot share what it says.
    """
    discriminator_config(directory)
    shape = shape or PairShape()
    path = Path(directory)
    discriminator: ElectraForPreTraining = load_network(
        discriminator_folder(path), ElectraForPreTraining
    )
    if not (path / "generator").is_dir() and not shape.with_generator:
        return ElectraPair(None, discriminator, shape)
    generator = _load_generator(path, discriminator, shape)
    own = {
        name: module.weight.detach().clone()
        for name, module in discriminator.electra.embeddings.named_children()
        if isinstance(module, nn.Embedding)
    }
    if not shape.with_generator:
        pair = ElectraPair(None, discriminator, shape)
        # The encoder guesses with a generator's head, where one is wanted and it fits.
        fits = _sizes(generator.config) == _sizes(discriminator.config)
        fits = fits and _table(generator) == _table(discriminator)
        if pair.lm_predictions is not None and pair.lm_bias is not None and fits:
            pair.lm_predictions.load_state_dict(generator.generator_predictions.state_dict())
            pair.lm_bias.data.copy_(generator.generator_lm_head.bias.detach())
        return pair
    _check_tables(path, generator, discriminator, shape)
    _check_sizes(path, generator.config, discriminator.config, shape)
    pair = ElectraPair(generator, discriminator, shape)
    for name, module in discriminator.electra.embeddings.named_children():
        if isinstance(module, GradientDisentangledEmbedding):
            # The checkpoint's table was the folded sum: the difference goes back to where it was.
            base = getattr(generator.electra.embeddings, name).weight
            module.delta.data.copy_(own[name] - base.detach())
    return pair


def _load_generator(
    path: Path, discriminator: ElectraForPreTraining, shape: PairShape
) -> ElectraForMaskedLM:
    """The generator beside a discriminator, or a new one that begins with what they share."""
    if (path / "generator").is_dir():
        loaded: ElectraForMaskedLM = load_network(path / "generator", ElectraForMaskedLM)
        return loaded
    generator = _new_generator(discriminator.config, shape)
    # In two stages the discriminator will start from it once more: nothing may be lost.
    known = generator.electra if shape.one_size else generator.electra.embeddings
    source = discriminator.electra if shape.one_size else discriminator.electra.embeddings
    known.load_state_dict(source.state_dict())
    return generator


def _table(network: Any) -> tuple[int, ...]:
    """Entries and width of a network's word embeddings."""
    return tuple(network.electra.embeddings.word_embeddings.weight.shape)


def _check_tables(
    path: Path,
    generator: ElectraForMaskedLM,
    discriminator: ElectraForPreTraining,
    shape: PairShape,
) -> None:
    """Refuse networks that cannot share their embeddings as `shape` says."""
    theirs, ours = _table(generator), _table(discriminator)
    one_vocabulary = theirs[0] == ours[0]
    shares = shape.sharing != "none" or shape.one_size
    if one_vocabulary and (theirs == ours or not shares):
        return
    other = "--set generator.sharing=none or " if one_vocabulary and not shape.one_size else ""
    raise InputError(
        "expected generator and discriminator in {path} with the same embeddings, found {theirs} "
        "and {ours} (vocabulary, width); give {other}a copy of it without generator/",
        path=path,
        theirs=theirs,
        ours=ours,
        other=other,
    )


def _check_sizes(
    path: Path,
    generator: ElectraConfig,
    discriminator: ElectraConfig,
    shape: PairShape,
    *,
    asked: bool = False,
) -> None:
    """Refuse a generator that the flags would have otherwise: it is as it is."""
    if (shape.sharing == "all" or shape.one_size) and _sizes(generator) != _sizes(discriminator):
        flag = "generator.sharing=all" if shape.sharing == "all" else "objective.schedule=two-stage"
        raise InputError(
            "expected networks of one size in {path} for {flag}, found generator {generator} and "
            "discriminator {discriminator} (layers, width, heads, inner width); a copy of it "
            "without generator/ begins with one like the discriminator",
            path=path,
            flag=flag,
            generator=_sizes(generator),
            discriminator=_sizes(discriminator),
        )
    width = discriminator.hidden_size
    wishes = [
        # The default asks for nothing where nobody chose it.
        (
            "generator.size",
            round(width * shape.generator_size) / width,
            generator.hidden_size / width,
            None if asked else round(width * GENERATOR_SIZE) / width,
        ),
        ("generator.layers", shape.generator_layers, generator.num_hidden_layers, None),
    ]
    for flag, wanted, found, default in wishes:
        if wanted not in (default, found):
            raise InputError(
                "expected {flag}={found:g}, as the generator in {path} has it, found {wanted:g}; "
                "leave {flag} out, or give a copy of it without generator/, which begins a new one",
                flag=flag,
                found=found,
                path=path,
                wanted=wanted,
            )


def _sizes(config: ElectraConfig) -> tuple[int, int, int, int]:
    return (
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
        config.intermediate_size,
    )


def load_network(folder: Path, network_class: type[Any]) -> Any:
    """Load one stock network in float32, every key of it.

    Raises:
        InputError: the file is damaged or of another architecture.
    """
    config = config_in(folder, folder)
    try:
        with quiet_transformers():
            network, info = network_class.from_pretrained(
                folder,
                config=config,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # refused below, by name
                dtype=torch.float32,
                output_loading_info=True,
                local_files_only=True,
            )
    except Exception as error:  # safetensors raises its own type, transformers several
        raise InputError(
            "cannot read the weights in {folder}: {error}; copy or download them again",
            folder=folder,
            error=" ".join(str(error).split()),
        ) from error
    missing = set(info["missing_keys"]) - fill_token_types(network, info["missing_keys"])
    sizes = [one[0] if isinstance(one, tuple) else one for one in info["mismatched_keys"]]
    unfit = [*sorted(missing), *info["unexpected_keys"], *sizes]
    if unfit:
        raise InputError(
            "expected the weights of {network} in {folder}, found missing or unexpected keys, or "
            "sizes, such as {unfit}; the file belongs to another architecture or configuration",
            network=network_class.__name__,
            folder=folder,
            unfit=unfit[0],
        )
    for name, weights in network.state_dict().items():
        if not bool(weights.isfinite().all()):
            raise InputError(
                "expected finite weights in {folder}, found NaN or infinity in {name}; the "
                "training that made them failed, or the file is damaged: take another",
                folder=folder,
                name=name,
            )
    return network
