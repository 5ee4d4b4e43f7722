"""Scaling laws, and the time, cost and energy of training.

N is parameters (Kaplan et al.: without embeddings), D training tokens, C floating-point operations.

Beware of the third approach: the paper prints rounded constants, and rounding alone moves the
optimal size at Gopher's budget from 40 to 32 billion parameters. Besiroglu et al. refitted the
paper's own data and found 72 billion, which agrees with the other two approaches. So of all rows of
`PARAMETRIC`, only the last one comes near "20 tokens per parameter".

Sources: Kaplan et al. 2020 (Scaling Laws for Neural Language Models), Hoffmann et al. 2022
(Chinchilla), Besiroglu et al. 2024 (Chinchilla Scaling: A replication attempt), Narayanan et al.
2021 (Efficient Large-Scale Language Model Training on GPU Clusters).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "APPROACHES",
    "PARAMETRIC",
    "SITE_OVERHEAD",
    "ParametricLoss",
    "TrainingRun",
    "compute_optimal",
    "training_flops",
]

#: A site's power over its devices' power: cooling and conversion take the rest.
SITE_OVERHEAD = 1.1

_GOPHER_FLOPS = 5.76e23  # the budget that Hoffmann et al. state their results at


def training_flops(n_parameters: float, tokens: float, *, recompute: bool = False) -> float:
    """Return the operations of training: 6 for each parameter and token (Kaplan et al. 2020).

    The forward pass takes two, a multiplication and an addition, and the backward pass four. With
    full recomputation of activations, the forward pass runs twice: 8. Attention's scores, which
    grow with the square of the sequence length, are left out.

    Raises ValueError if a number isn't above 0.

    >>> f"{training_flops(175e9, 300e9):.3g}"
    '3.15e+23'
    """
    _require_positive("n_parameters", n_parameters)
    _require_positive("tokens", tokens)
    return (8 if recompute else 6) * n_parameters * tokens


@dataclass(frozen=True)
class ParametricLoss:
    """L(N, D) = E + A / N^alpha + B / D^beta, in nats per token."""

    #: The loss that no model falls below.
    e: float
    #: Scales the loss due to too few parameters.
    a: float
    #: Scales the loss due to too few tokens.
    b: float
    #: How fast the loss falls as parameters grow.
    alpha: float
    #: How fast it falls as tokens grow.
    beta: float

    def loss(self, n_parameters: float, tokens: float) -> float:
        """Return the loss of a model of `n_parameters` after `tokens` tokens."""
        _require_positive("n_parameters", n_parameters)
        _require_positive("tokens", tokens)
        reached: float = self.e + self.a / n_parameters**self.alpha + self.b / tokens**self.beta
        return reached

    def optimal_parameters(self, flops: float) -> float:
        """Return the N that minimizes the loss if 6 N D = `flops` (Hoffmann et al., equation 4)."""
        _require_positive("flops", flops)
        both = self.alpha + self.beta
        g = (self.alpha * self.a / (self.beta * self.b)) ** (1 / both)
        best: float = g * (flops / 6) ** (self.beta / both)
        return best


PARAMETRIC: Mapping[str, ParametricLoss] = MappingProxyType(
    {
        # Hoffmann et al. 2022, equation 10, as printed.
        "rounded": ParametricLoss(1.69, 406.4, 410.7, 0.34, 0.28),
        # The same with more digits of the exponents, from the paper's source files.
        "unrounded": ParametricLoss(1.69, 406.4, 410.7, 0.3392, 0.2849),
        # Besiroglu et al. 2024, refitted to the data of the paper's figure.
        "replication": ParametricLoss(1.8172, 482.01, 2085.43, 0.3478, 0.3658),
    }
)

# Approaches 1 and 2 are power laws: N at Gopher's budget, and the exponent (table 2 of the paper).
_POWER_LAWS = {"approach-1": (67e9, 0.50), "approach-2": (63e9, 0.49)}

# 1: the envelope of training curves; 2: profiles of equal compute; 3: the parametric loss.
APPROACHES = (*_POWER_LAWS, *(f"approach-3-{constants}" for constants in PARAMETRIC))


def compute_optimal(flops: float, approach: str = "approach-1") -> tuple[float, float]:
    """Return the parameters and tokens of least loss for a compute budget; tokens are C / (6 N).

    Raises ValueError if the approach is unknown or the budget isn't above 0.

    >>> n, d = compute_optimal(5.76e23)
    >>> f"{n / 1e9:.0f}B parameters, {d / 1e12:.2f}T tokens"
    '67B parameters, 1.43T tokens'
    """
    _require_positive("flops", flops)
    if approach in _POWER_LAWS:
        at_gopher, exponent = _POWER_LAWS[approach]
        n_parameters = at_gopher * (flops / _GOPHER_FLOPS) ** exponent
    elif approach in APPROACHES:
        constants = approach.removeprefix("approach-3-")
        n_parameters = PARAMETRIC[constants].optimal_parameters(flops)
    else:
        raise ValueError(f"unknown approach {approach!r}; known are {', '.join(APPROACHES)}")
    return n_parameters, flops / (6 * n_parameters)


@dataclass(frozen=True)
class TrainingRun:
    """A training run on many devices of one kind.

    Raises ValueError if a number is out of range.

    >>> flops = training_flops(175e9, 300e9, recompute=True)
    >>> run = TrainingRun(flops, devices=1024, flops_per_s=312e12, utilisation=140 / 312)
    >>> round(run.days)
    34
    """

    #: Operations of the whole training; see `training_flops`.
    flops: float
    #: The number of devices.
    devices: int
    #: One device's peak rate, such as `Accelerator.flops_per_s("bf16")`.
    flops_per_s: float
    #: The share of the peak rate that training reaches, above 0 and at most 1. For GPT-3 on A100s,
    #: Narayanan et al. report 140 of 312 TFLOP/s, 0.45, including recomputation.
    utilisation: float

    def __post_init__(self) -> None:
        for name in ("flops", "devices", "flops_per_s", "utilisation"):
            _require_positive(name, getattr(self, name))
        if self.utilisation > 1:
            raise ValueError(f"expected utilisation of at most 1, but got {self.utilisation!r}")

    @property
    def seconds(self) -> float:
        """Wall time in seconds."""
        return self.flops / (self.devices * self.flops_per_s * self.utilisation)

    @property
    def days(self) -> float:
        """Wall time in days."""
        return self.seconds / 86400

    @property
    def device_hours(self) -> float:
        """Hours summed over all devices."""
        return self.devices * self.seconds / 3600

    def cost(self, per_device_hour: float) -> float:
        """Return the price, in the currency of `per_device_hour`."""
        _require_not_negative("per_device_hour", per_device_hour)
        return self.device_hours * per_device_hour

    def energy_kwh(self, device_watts: float, overhead: float = SITE_OVERHEAD) -> float:
        """Return kilowatt-hours.

        `overhead` is the site's power over the devices' power (power usage effectiveness, at least
        1). `device_watts` may include a share of hosts and network.
        """
        _require_positive("device_watts", device_watts)
        if overhead < 1:
            raise ValueError(
                f"expected overhead of at least 1, because a site draws at least its devices' "
                f"power, but got {overhead!r}"
            )
        return self.device_hours * device_watts / 1000 * overhead

    def co2_kg(
        self, device_watts: float, grams_per_kwh: float, overhead: float = SITE_OVERHEAD
    ) -> float:
        """Return kilograms of CO2; a kilowatt-hour of the grid emits `grams_per_kwh` grams."""
        _require_not_negative("grams_per_kwh", grams_per_kwh)
        return self.energy_kwh(device_watts, overhead) * grams_per_kwh / 1000


def _require_positive(name: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ValueError(f"expected {name} to be a number above 0, but got {value!r}")


def _require_not_negative(name: str, value: float) -> None:
    if not 0 <= value < float("inf"):
        raise ValueError(f"expected {name} to be at least 0, but got {value!r}")
