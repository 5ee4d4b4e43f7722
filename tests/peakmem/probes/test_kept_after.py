"""What lab 10's probes count as kept for backward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from peakmem.probes.lab10.figures import kept_after


def _least_kept(call: Callable[[], Tensor], x: Tensor) -> int:
    return min(kept_after(call, x)[0] for _ in range(2))


def test_bytes_hidden_behind_the_output_count() -> None:
    x = torch.ones(4096)

    def roomy() -> Tensor:
        whole = torch.empty(2 * x.numel())  # x's values for backward, in the output's storage
        whole[x.numel() :] = x
        return whole[: x.numel()].copy_(x)

    assert _least_kept(roomy, x) == x.nbytes
    assert _least_kept(lambda: x + 1, x) == 0


def test_bytes_cut_into_small_objects_count() -> None:
    x = torch.ones(4096, 8)
    kept: list[list[bytes]] = []

    def hoards() -> Tensor:
        raw = x.numpy().tobytes()
        kept.append([raw[start : start + 1000] for start in range(0, len(raw), 1000)])
        return x + 1

    assert kept_after(hoards, x)[0] > x.nbytes // 4
