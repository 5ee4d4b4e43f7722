"""Does generating text fit? Weights, the KV cache of all sequences, and the last tokens' logits.

Left out are the temporaries of the prompt's pass, which grow with the tokens that are processed at
once, and what a server sets aside on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from peakmem.core.errors import require_whole
from peakmem.predict.model_states import weight_bytes
from peakmem.specs.kv_cache import CacheLayer
from peakmem.specs.parameter_table import ParameterTable
from peakmem.specs.recipes import PRECISIONS, Quantized, storage_bytes

__all__ = ["Inference", "Serving"]

ServedOwner = Literal["weights", "kv_cache", "logits"]


@dataclass(frozen=True)
class Serving:
    """How a model is run; ValueError for a number below 1 or an unknown format."""

    #: Sequences at a time.
    batch: int = 1
    #: Tokens of each in the cache, those of the prompt and those that were generated.
    context: int = 1024
    #: A key of PRECISIONS; what it computes in is the format of weights and cache.
    precision: str = "bf16"
    #: Format of the matrices of attention, MLP and experts; None for as all else.
    quantized: Quantized | None = None
    #: Devices that share each layer's matrices, and the heads of the cache.
    tensor: int = 1
    #: Devices that share each layer's experts, each of which has some experts whole. They are so
    #: many groups of `tensor` devices, and each group has a batch of its own. 1 for experts that
    #: are shared as other matrices are.
    expert: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "context", "tensor", "expert"):
            require_whole(name, getattr(self, name))
        if self.expert > 1 and self.expert % self.tensor:
            raise ValueError(
                f"{self.expert} devices that share experts are no whole number of groups of "
                f"{self.tensor}; let tensor divide expert"
            )
        for name, value, known in (
            ("precision", self.precision, tuple(PRECISIONS)),
            ("quantized", self.quantized, (None, *get_args(Quantized))),
        ):
            if value not in known:
                choices = ", ".join(map(repr, known))
                raise ValueError(f"{name}={value!r} is unknown; use one of {choices}")

    @property
    def devices(self) -> int:
        """All of them."""
        return max(self.tensor, self.expert)

    @property
    def dtype(self) -> str:
        """Of the cache, and of the weights that are not quantized."""
        return PRECISIONS[self.precision].compute


@dataclass(frozen=True)
class Inference:
    """A model that generates text: what it holds on one device.

    >>> from peakmem.specs.parameter_table import Parameter
    >>> table = ParameterTable("tiny", "Tiny", (Parameter("mlp", (10, 10)),))
    >>> tiny = Inference(table, (CacheLayer(elements=8, heads=2),), 100, Serving(context=50))
    >>> tiny.by_owner()
    {'weights': 200, 'kv_cache': 800, 'logits': 600}
    """

    table: ParameterTable
    cache: Sequence[CacheLayer]
    vocab: int
    serving: Serving

    def by_owner(self) -> dict[ServedOwner, int]:
        """Return bytes by owner.

        Each sequence's next token has its logits, and a copy in fp32 to sample from.
        """
        serving = self.serving
        table = self.table.with_experts_shared(serving.expert)
        expert_parts = 1 if serving.expert > 1 else serving.tensor
        weights = weight_bytes(
            table, serving.dtype, serving.quantized, serving.tensor, expert_parts
        )
        logits = storage_bytes(self.vocab, serving.dtype) + storage_bytes(self.vocab, "fp32")
        return {
            "weights": weights,
            "kv_cache": serving.batch * self.sequence_bytes,
            "logits": serving.batch * logits,
        }

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(self.by_owner().values())

    @property
    def sequence_bytes(self) -> int:
        """The cache of one sequence with its whole context."""
        serving = self.serving
        elements = (layer.elements_of(serving.context, serving.tensor) for layer in self.cache)
        return storage_bytes(sum(elements), serving.dtype)

    def largest_batch(self, memory_bytes: int) -> int:
        """Return how many sequences of this context fit into so much memory; 0 if none does."""
        one = replace(self, serving=replace(self.serving, batch=1))
        by_owner = one.by_owner()
        weights = by_owner.pop("weights")
        return max(0, memory_bytes - weights) // sum(by_owner.values())
