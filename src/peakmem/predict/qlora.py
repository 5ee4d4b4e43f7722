"""The peak of a QLoRA step: a frozen model in NF4 with adapters on each of its matrices.

The figure is `build_ledger`'s, so it inherits `build_ledger`'s omissions.
"""

from __future__ import annotations

from peakmem.predict.step_ledger import build_ledger
from peakmem.specs.models import ModelShape
from peakmem.specs.recipes import Recipe

__all__ = ["qlora_peak"]


def qlora_peak(
    shape: ModelShape,
    rank: int,
    batch: int,
    seq: int,
    *,
    precision: str = "bf16",
    profile: str = "torch-cuda",
) -> int:
    """Return the peak bytes of one training step of QLoRA (Dettmers et al. 2023).

    The matrices of attention and MLP are in NF4 with double quantization, and each is widened as it
    is used, in forward and in backward. Adapters of this rank are trained by AdamW; embeddings,
    norms and biases are frozen in the format of `precision`, a key of PRECISIONS.

    Raises ValueError for a rank, batch or seq below 1, and for a shape that `build_ledger` refuses.

    >>> from peakmem.specs.models import model
    >>> qlora_peak(model("llama2-7b"), rank=64, batch=1, seq=512) < 16e9
    True
    """
    if rank < 1:
        raise ValueError(
            f"expected a rank of 1 or more, but got {rank!r}; rank 0 trains no adapter"
        )
    recipe = Recipe(
        precision=precision,
        batch=batch,
        sequence=seq,
        lora_rank=rank,
        lora_targets=("all-linear",),
        quantized_base="nf4",
    )
    return build_ledger(shape, recipe, profile=profile).peak_bytes
