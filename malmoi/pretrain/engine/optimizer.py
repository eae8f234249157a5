"""The optimizer of the paper, Muon beside it, and the average of weights.

Everything here is deterministic and lives in parameter order, so a checkpoint restores it whole.
"""

import math
from collections.abc import Iterable, Iterator

import torch

from malmoi.pretrain.config.run_plan import OptimizerPlan
from malmoi.pretrain.model.networks import ElectraPair
from malmoi.schedule import warmup_then_decay

_BETAS = (0.9, 0.999)
_EPSILON = 1e-6


def learning_rate_at(fraction: float, plan: OptimizerPlan) -> float:
    """The learning rate when `fraction` of the run is done, 0 to 1."""
    peak, warmup = plan.learning_rate, plan.warmup_fraction
    if not plan.decay_from_start:
        return warmup_then_decay(fraction, 1, warmup, peak=peak)
    # google-research/electra, model/optimization.py, create_optimizer: the decay of the whole run
    # times the ramp, so that the peak is not reached.
    ramp = min(1.0, fraction / warmup) if warmup > 0 else 1.0
    return peak * max(0.0, 1 - fraction) * ramp


class Optimizers:
    """AdamW for all parameters, or for all but the hidden matrices, which Muon takes then."""

    def __init__(self, pair: ElectraPair, plan: OptimizerPlan) -> None:
        self._peak = plan.learning_rate
        self._corrects_bias = plan.adam_bias_correction
        self._muon_scale = plan.muon_learning_rate / self._peak
        # The encoder layers' matrices: what Muon is made for (Jordan et al. 2024).
        hidden = {
            id(parameter)
            for network in pair.networks().values()
            for parameter in network.electra.encoder.parameters()
            if plan.name == "muon" and parameter.dim() == 2
        }
        groups = []
        # One group for each network, for in a two-stage run they do not begin together and
        # Adam's correction depends on a parameter's own number of steps.
        for parameters in _by_network(pair):
            rest = [p for p in parameters if id(p) not in hidden]
            plain = [p for p in rest if p.dim() < 2 and not plan.decay_all]
            plain_ids = {id(p) for p in plain}
            decayed = [p for p in rest if id(p) not in plain_ids]
            for members, decay in ((decayed, plan.weight_decay), (plain, 0.0)):
                if members:
                    groups.append(
                        {"params": members, "weight_decay": decay, "decay": decay, "done": 0}
                    )
        self.adam = torch.optim.AdamW(groups, lr=self._peak, betas=_BETAS, eps=_EPSILON, fused=True)
        self.muon: torch.optim.Optimizer | None = None
        if hidden:
            self.muon = torch.optim.Muon(
                [p for p in pair.parameters() if id(p) in hidden],
                lr=plan.muon_learning_rate,
                weight_decay=plan.weight_decay,
                # The update's size is that of AdamW's (Moonlight, Liu et al. 2025).
                adjust_lr_fn="match_rms_adamw",
            )

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the coming step; of Muon, in proportion.

        ELECTRA's code has no bias correction. torch's AdamW always corrects, so rate, epsilon
        and decay are changed such that its step is the uncorrected one:
        rate x m / (sqrt(v) + epsilon).
        """
        for group in self.adam.param_groups:
            if self._corrects_bias:
                group["lr"] = rate
                continue
            # Counted on the host: reading the state's own count would wait for the device.
            step = group["done"] + 1
            first, second = 1 - _BETAS[0] ** step, math.sqrt(1 - _BETAS[1] ** step)
            group["lr"] = rate * first / second
            group["eps"] = _EPSILON / second
            group["weight_decay"] = group["decay"] * second / first
        if self.muon is not None:
            for group in self.muon.param_groups:
                group["lr"] = rate * self._muon_scale

    def step(self) -> None:
        """Change the weights by their gradients, then drop these."""
        for optimizer in self.members():
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        for group in self.adam.param_groups:
            # A network that has had no gradient yet has taken no step. In one that has, single
            # parameters may still have none: a head that the objective does not use.
            group["done"] += any(p in self.adam.state for p in group["params"])

    def members(self) -> Iterator[torch.optim.Optimizer]:
        """The one or two optimizers."""
        yield self.adam
        if self.muon is not None:
            yield self.muon

    def copy_state(self, source: torch.nn.Parameter, target: torch.nn.Parameter) -> None:
        """Let a parameter have what has been learnt of another one's gradients."""
        for optimizer in self.members():
            if source in optimizer.state:
                optimizer.state[target] = {
                    kind: value.clone() for kind, value in optimizer.state[source].items()
                }

    def state(self, pair: ElectraPair) -> dict[str, torch.Tensor]:
        """Every tensor of the state, named PARAMETER/KEY."""
        names = {id(parameter): name for name, parameter in pair.named_parameters()}
        return {
            f"{names[id(parameter)]}/{key}": value
            for optimizer in self.members()
            for parameter, values in optimizer.state.items()
            for key, value in values.items()
            if isinstance(value, torch.Tensor)
        }

    def restore(self, pair: ElectraPair, state: dict[str, torch.Tensor]) -> None:
        own = {
            id(parameter): optimizer
            for optimizer in self.members()
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        found: dict[str, dict[str, torch.Tensor]] = {}
        for key, value in state.items():
            name, _, kind = key.rpartition("/")
            found.setdefault(name, {})[kind] = value
        for name, parameter in pair.named_parameters():
            if name in found:
                # The step count too: fused AdamW wants it beside the weights.
                own[id(parameter)].state[parameter] = {
                    kind: value.to(parameter.device) for kind, value in found[name].items()
                }
        for group in self.adam.param_groups:
            states = [self.adam.state[p] for p in group["params"] if p in self.adam.state]
            group["done"] = max((int(values["step"]) for values in states), default=0)


def _by_network(pair: ElectraPair) -> Iterator[list[torch.nn.Parameter]]:
    """Parameters of the generator, then those that only the discriminator has."""
    generator = [] if pair.generator is None else list(pair.generator.parameters())
    taken = {id(parameter) for parameter in generator}
    if pair.span_head is not None:
        generator += list(pair.span_head.parameters())
        taken |= {id(parameter) for parameter in pair.span_head.parameters()}
    yield generator
    yield [parameter for parameter in pair.parameters() if id(parameter) not in taken]


class WeightAverage:
    """Running mean of the weights over the end of a run (Izmailov et al. 2018)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean: dict[str, torch.Tensor] = {}

    def add(self, pair: ElectraPair) -> None:
        """Take the weights as they are now into the mean, but of what is frozen none."""
        self.count += 1
        with torch.no_grad():
            for name, parameter in pair.named_parameters():
                if not parameter.requires_grad:
                    continue
                if name in self.mean:
                    self.mean[name] += (parameter - self.mean[name]) / self.count
                else:
                    self.mean[name] = parameter.detach().clone()

    def put_into(self, pair: ElectraPair) -> None:
        """Replace the weights by their mean, if there is one."""
        with torch.no_grad():
            for name, parameter in pair.named_parameters():
                if name in self.mean:
                    parameter.copy_(self.mean[name])


def clip_gradients(parameters: Iterable[torch.nn.Parameter], limit: float) -> torch.Tensor:
    """Scale all gradients so that their norm together is at most `limit`; 0: leave them.

    Returns:
        float32 [], the norm they had: whoever reads it waits for the device.
    """
    if limit > 0:
        return torch.nn.utils.clip_grad_norm_(parameters, limit)
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    return torch.nn.utils.get_total_norm(gradients)
