"""Does generating text fit? Weights, the KV cache of all sequences, and the last tokens' logits.

The prediction leaves out the temporaries of the prompt's pass, which grow with the tokens processed
at once, and memory that a server reserves on top.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from peakmem.core.errors import require_one_of, require_whole
from peakmem.predict.model_states import weight_bytes
from peakmem.specs.kv_cache import CacheLayer
from peakmem.specs.parameter_table import ParameterTable
from peakmem.specs.recipes import PRECISIONS, Quantized, storage_bytes

__all__ = ["Inference", "Serving"]

ServedOwner = Literal["weights", "kv_cache", "logits"]


@dataclass(frozen=True)
class Serving:
    """How a model runs. Raises ValueError if a number is below 1 or a format is unknown."""

    #: Sequences at a time.
    batch: int = 1
    #: Tokens of each sequence in the cache, both prompt and generated.
    context: int = 1024
    #: A key of PRECISIONS; its compute format is that of weights and cache.
    precision: str = "bf16"
    #: Format of the matrices of attention, MLP and experts; None for the compute format.
    quantized: Quantized | None = None
    #: Devices that share each layer's matrices, and the heads of the cache.
    tensor: int = 1
    #: Devices that share each layer's experts; each expert is whole on one of them. They form
    #: groups of `tensor` devices, and each group has a batch of its own. 1 if experts are split as
    #: other matrices are.
    expert: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "context", "tensor", "expert"):
            require_whole(name, getattr(self, name))
        if self.expert > 1 and self.expert % self.tensor:
            raise ValueError(
                f"tensor={self.tensor} doesn't divide expert={self.expert}: experts are shared by "
                "whole groups of tensor-parallel devices; make expert a multiple of tensor"
            )
        require_one_of("precision", self.precision, PRECISIONS)
        require_one_of("quantized", self.quantized, (None, *get_args(Quantized)))

    @property
    def devices(self) -> int:
        """All of them."""
        return max(self.tensor, self.expert)

    @property
    def dtype(self) -> str:
        """Format of the cache and of weights that aren't quantized."""
        return PRECISIONS[self.precision].compute


@dataclass(frozen=True)
class Inference:
    """A model that generates text, and its memory on one device.

    >>> from peakmem.specs.parameter_table import Parameter
    >>> table = ParameterTable("tiny", "Tiny", (Parameter("mlp", (10, 10)),))
    >>> tiny = Inference(table, (CacheLayer(elements=8, heads=2),), 100, Serving(context=50))
    >>> tiny.by_owner()
    {'weights': 200, 'kv_cache': 800, 'logits': 600}
    """

    #: The model's parameters.
    table: ParameterTable
    #: The cache of each layer.
    cache: Sequence[CacheLayer]
    #: The number of logits for each token.
    vocab: int
    #: How the model runs.
    serving: Serving

    def by_owner(self) -> dict[ServedOwner, int]:
        """Return bytes by owner.

        Logits cover each sequence's next token, and include an fp32 copy to sample from.
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
        """Bytes of all owners."""
        return sum(self.by_owner().values())

    @property
    def sequence_bytes(self) -> int:
        """Bytes of the cache of one sequence at full context."""
        serving = self.serving
        elements = (layer.elements_of(serving.context, serving.tensor) for layer in self.cache)
        return storage_bytes(sum(elements), serving.dtype)

    def largest_batch(self, memory_bytes: int) -> int:
        """Return how many sequences of this context fit into `memory_bytes`; 0 if none does."""
        one = replace(self, serving=replace(self.serving, batch=1))
        by_owner = one.by_owner()
        weights = by_owner.pop("weights")
        return max(0, memory_bytes - weights) // sum(by_owner.values())
