"""What lab 10's probes count as kept for backward."""

from __future__ import annotations

import torch
from torch import Tensor

from peakmem.probes.lab10.figures import kept_after


def test_bytes_hidden_behind_the_output_count() -> None:
    x = torch.ones(4096)

    def roomy() -> Tensor:
        whole = torch.empty(2 * x.numel())  # x's values for backward, in the output's storage
        whole[x.numel() :] = x
        return whole[: x.numel()].copy_(x)

    assert kept_after(roomy, x)[0] == x.nbytes
    assert kept_after(lambda: x + 1, x)[0] == 0


def test_bytes_cut_into_small_objects_count() -> None:
    x = torch.ones(4096, 8)
    kept: list[list[bytes]] = []

    def hoards() -> Tensor:
        raw = x.numpy().tobytes()
        kept.append([raw[start : start + 1000] for start in range(0, len(raw), 1000)])
        return x + 1

    assert kept_after(hoards, x)[0] > x.nbytes // 4
