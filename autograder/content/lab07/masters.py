"""A correct MasterWeights, and one for each common mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch

__all__ = ["MUTANTS", "MasterWeights"]


class MasterWeights:
    """SGD on float32 masters, split into small methods so that a mutant can override one."""

    def __init__(self, lr: float, dtype: torch.dtype = torch.float16) -> None:
        self.lr, self.dtype = lr, dtype
        self.master: list[torch.Tensor] = []
        self.params: list[torch.Tensor] = []

    def load(self, tensors: Sequence[torch.Tensor]) -> None:
        self.master = [self.first_master(tensor) for tensor in tensors]
        self.params = [master.to(self.dtype).requires_grad_() for master in self.master]

    def first_master(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().float().clone()

    @torch.no_grad()
    def step(self) -> None:
        for master, param in zip(self.master, self.params, strict=True):
            if param.grad is not None:
                self.update(master, param, param.grad)
                self.refresh(master, param)

    def update(self, master: torch.Tensor, param: torch.Tensor, grad: torch.Tensor) -> None:
        master -= self.lr * grad.float()

    def refresh(self, master: torch.Tensor, param: torch.Tensor) -> None:
        param.copy_(master)


class _SharesItsLists(MasterWeights):
    """All instances share the tensors of the one that loaded last."""

    _masters: ClassVar[list[torch.Tensor]] = []
    _copies: ClassVar[list[torch.Tensor]] = []

    def load(self, tensors: Sequence[torch.Tensor]) -> None:
        super().load(tensors)
        self._masters[:], self._copies[:] = self.master, self.params
        self.master, self.params = self._masters, self._copies


class _SharesItsRate(MasterWeights):
    """All instances share the learning rate of the one created last."""

    _rates: ClassVar[list[float]] = []

    def __init__(self, lr: float, dtype: torch.dtype = torch.float16) -> None:
        super().__init__(lr, dtype)
        self._rates[:] = [lr]

    def update(self, master: torch.Tensor, param: torch.Tensor, grad: torch.Tensor) -> None:
        master -= self._rates[0] * grad.float()


class _UpdatesTheCopy(MasterWeights):
    def refresh(self, master: torch.Tensor, param: torch.Tensor) -> None:
        param -= self.lr * param.grad.float()  # type: ignore[union-attr]
        master.copy_(param)

    def update(self, master: torch.Tensor, param: torch.Tensor, grad: torch.Tensor) -> None: ...


class _MastersFromTheCopy(MasterWeights):
    def refresh(self, master: torch.Tensor, param: torch.Tensor) -> None:
        param.copy_(master)
        master.copy_(param)


class _MasterRoundedAtFirst(MasterWeights):
    def first_master(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(self.dtype).float()


class _ProductInLow(MasterWeights):
    def update(self, master: torch.Tensor, param: torch.Tensor, grad: torch.Tensor) -> None:
        master -= (self.lr * grad).float()


class _CopyNotRefreshed(MasterWeights):
    def refresh(self, master: torch.Tensor, param: torch.Tensor) -> None: ...


class _CopyUpdatedBeside(MasterWeights):
    def refresh(self, master: torch.Tensor, param: torch.Tensor) -> None:
        param -= (self.lr * param.grad.float()).to(param.dtype)  # type: ignore[union-attr]


class _CopyOneStepLate(MasterWeights):
    def update(self, master: torch.Tensor, param: torch.Tensor, grad: torch.Tensor) -> None:
        param.copy_(master)
        super().update(master, param, grad)

    def refresh(self, master: torch.Tensor, param: torch.Tensor) -> None: ...


class _StepsUphill(MasterWeights):
    def update(self, master: torch.Tensor, param: torch.Tensor, grad: torch.Tensor) -> None:
        master += self.lr * grad.float()


class _MastersStandStill(MasterWeights):
    def update(self, master: torch.Tensor, param: torch.Tensor, grad: torch.Tensor) -> None:
        param.copy_(master - self.lr * grad.float())

    def refresh(self, master: torch.Tensor, param: torch.Tensor) -> None: ...


class _AliasesTheInput(MasterWeights):
    def first_master(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().float()


class _StopsAtNone(MasterWeights):
    @torch.no_grad()
    def step(self) -> None:
        for master, param in zip(self.master, self.params, strict=True):
            if param.grad is None:
                return
            self.update(master, param, param.grad)
            self.refresh(master, param)


MUTANTS: dict[str, type[MasterWeights]] = {
    "shares_its_lists": _SharesItsLists,
    "shares_its_rate": _SharesItsRate,
    "updates_the_copy": _UpdatesTheCopy,
    "masters_from_the_copy": _MastersFromTheCopy,
    "product_in_low": _ProductInLow,
    "copy_not_refreshed": _CopyNotRefreshed,
    "copy_updated_beside": _CopyUpdatedBeside,
    "copy_one_step_late": _CopyOneStepLate,
    "steps_uphill": _StepsUphill,
    "masters_stand_still": _MastersStandStill,
    "master_rounded_at_first": _MasterRoundedAtFirst,
    "aliases_the_input": _AliasesTheInput,
    "stops_at_none": _StopsAtNone,
}
