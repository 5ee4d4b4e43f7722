"""A student's value as plain data: tensors of a GPU too."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from peakmem.probes import as_sent


class OnAGpu(torch.Tensor):
    """Refuses numpy, as tensors of a GPU do, until it is copied to the host."""

    def __array__(self, dtype: Any = None) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    def cpu(self) -> Any:
        return self.as_subclass(torch.Tensor)


def test_a_tensor_of_a_gpu_is_copied_to_the_host() -> None:
    gradients = [torch.tensor([1.0, 2.0]).as_subclass(OnAGpu), None]
    first, second = as_sent(gradients)
    assert isinstance(first, np.ndarray)
    assert first.tolist() == [1.0, 2.0]
    assert second is None
