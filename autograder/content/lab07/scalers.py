"""A correct loss scaler, and one for each common mistake.

Long because each mistake is a class of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch

__all__ = ["MUTANTS", "LossScaler", "TorchScaler"]


class TorchScaler:
    """torch's own GradScaler under the exercise's names: the reference for every answer."""

    def __init__(
        self,
        initial: float = 2.0**16,
        growth: float = 2.0,
        backoff: float = 0.5,
        interval: int = 2000,
    ) -> None:
        self._scaler = torch.amp.GradScaler(
            "cpu",  # with "cuda" it warns and disables itself if there is no GPU
            init_scale=initial,
            growth_factor=growth,
            backoff_factor=backoff,
            growth_interval=interval,
        )
        self.unscale_ = self._scaler.unscale_
        self.step = self._scaler.step
        self.update = self._scaler.update

    def begin_after(self, good_steps: int) -> None:
        """Count this many good steps as taken."""
        self._scaler._init_growth_tracker = good_steps

    def scale(self, loss: Any) -> torch.Tensor:
        return self._scaler.scale(torch.as_tensor(loss, dtype=torch.float32))


class LossScaler:
    """Does what GradScaler does, split into small methods so that a mutant can override one."""

    def __init__(
        self,
        initial: float = 2.0**16,
        growth: float = 2.0,
        backoff: float = 0.5,
        interval: int = 2000,
    ) -> None:
        self.factor = initial
        self.growth, self.backoff, self.interval = growth, backoff, interval
        self.good_steps = 0  # in a row, since the last change of the scale
        self.overflow = False
        self.unscaled = False

    def begin_after(self, good_steps: int) -> None:
        """Count this many good steps as taken."""
        self.good_steps = good_steps

    def scale(self, loss: Any) -> Any:
        return loss * self.factor

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        if self.unscaled:
            return
        self.divide(optimizer)
        self.overflow = self.finds_overflow(self.gradients(optimizer))
        self.unscaled = True

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.unscale_(optimizer)
        if not self.overflow:
            optimizer.step()

    def update(self) -> None:
        if self.overflow:
            self.back_off()
        else:
            self.count_good_step()
        self.overflow = self.unscaled = False

    def gradients(self, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        return [p.grad for p in parameters if p.grad is not None]

    def divide(self, optimizer: torch.optim.Optimizer) -> None:
        for gradient in self.gradients(optimizer):
            gradient /= self.factor

    def finds_overflow(self, gradients: Sequence[torch.Tensor]) -> bool:
        return not all(bool(gradient.isfinite().all()) for gradient in gradients)

    def back_off(self) -> None:
        self.factor *= self.backoff
        self.good_steps = 0

    def count_good_step(self) -> None:
        self.good_steps += 1
        if self.good_steps == self.interval:
            self.factor *= self.growth
            self.good_steps = 0


class _SharesItsState(LossScaler):
    """All instances share the attributes of the one created last."""

    _shared: ClassVar[dict[str, Any]] = {}

    def __init__(self, **settings: Any) -> None:
        self.__dict__ = self._shared
        super().__init__(**settings)


class _UnscalesTwice(LossScaler):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.unscaled = False
        super().step(optimizer)


class _UnscalesOnlyInStep(LossScaler):
    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        pass

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        super().unscale_(optimizer)
        super().step(optimizer)


class _StepDoesNotUnscale(LossScaler):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.overflow = self.finds_overflow(self.gradients(optimizer))
        if not self.overflow:
            optimizer.step()


class _UnscalesOnlyOnce(LossScaler):
    def begin_after(self, good_steps: int) -> None:
        super().begin_after(good_steps)
        self.unscaled = good_steps > 0

    def update(self) -> None:
        super().update()
        self.unscaled = True


class _NeverForgetsUnscale(LossScaler):
    """Once unscale_ was called from outside, step never unscales again."""

    called = False

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        super().unscale_(optimizer)
        self.called = True

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if not self.called:
            super().unscale_(optimizer)
        if not self.overflow:
            optimizer.step()


class _StepsWithoutLookingAfterUnscale(LossScaler):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        if self.unscaled:
            self.overflow = False
        super().step(optimizer)


class _MultipliesByScale(LossScaler):
    def divide(self, optimizer: torch.optim.Optimizer) -> None:
        for gradient in self.gradients(optimizer):
            gradient *= self.factor


class _IgnoresNan(LossScaler):
    def finds_overflow(self, gradients: Sequence[torch.Tensor]) -> bool:
        return any(bool(gradient.isinf().any()) for gradient in gradients)


class _IgnoresInf(LossScaler):
    def finds_overflow(self, gradients: Sequence[torch.Tensor]) -> bool:
        return any(bool(gradient.isnan().any()) for gradient in gradients)


class _LooksAtTheLoss(LossScaler):
    loss_overflows = False

    def scale(self, loss: Any) -> Any:
        scaled = super().scale(loss)
        self.loss_overflows = not bool(torch.as_tensor(scaled).isfinite())
        return scaled

    def finds_overflow(self, gradients: Sequence[torch.Tensor]) -> bool:
        return self.loss_overflows

    def update(self) -> None:
        self.overflow = self.loss_overflows  # of whatever was scaled last, even if only for a log
        super().update()


class _LastGradientDecides(LossScaler):
    def finds_overflow(self, gradients: Sequence[torch.Tensor]) -> bool:
        return super().finds_overflow(gradients[-1:])


class _FirstGroupOnly(LossScaler):
    def gradients(self, optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
        parameters = optimizer.param_groups[0]["params"]
        return [p.grad for p in parameters if p.grad is not None]


class _StepsAnyway(LossScaler):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.unscale_(optimizer)
        optimizer.step()


class _ClearsInsteadOfSkipping(LossScaler):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self.unscale_(optimizer)
        if self.overflow:
            for gradient in self.gradients(optimizer):
                gradient.zero_()
        optimizer.step()


class _SkipsForEver(LossScaler):
    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        overflow = self.overflow
        super().unscale_(optimizer)
        self.overflow = self.overflow or overflow

    def update(self) -> None:
        overflow = self.overflow
        super().update()
        self.overflow = overflow


class _KeepsCountAfterSkip(LossScaler):
    def back_off(self) -> None:
        self.factor *= self.backoff


class _KeepsCountAfterGrowth(LossScaler):
    def count_good_step(self) -> None:
        self.good_steps += 1
        if self.good_steps >= self.interval:
            self.factor *= self.growth


class _GrowsEarly(LossScaler):
    def count_good_step(self) -> None:
        self.good_steps += 1
        if self.good_steps >= self.interval - 1:
            self.factor *= self.growth
            self.good_steps = 0


class _GrowsLate(LossScaler):
    def count_good_step(self) -> None:
        self.good_steps += 1
        if self.good_steps > self.interval:
            self.factor *= self.growth
            self.good_steps = 0


class _NeverBacksOff(LossScaler):
    def back_off(self) -> None:
        self.good_steps = 0


class _ChangesBeforeUpdate(LossScaler):
    def step(self, optimizer: torch.optim.Optimizer) -> None:
        super().step(optimizer)
        if self.overflow:
            self.factor *= self.backoff

    def back_off(self) -> None:
        self.good_steps = 0


class _BacksOffLate(LossScaler):
    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.owed = 1.0

    def back_off(self) -> None:
        self.owed = self.backoff
        self.good_steps = 0

    def update(self) -> None:
        self.factor *= self.owed
        self.owed = 1.0
        super().update()


MUTANTS: dict[str, type[LossScaler]] = {
    "shares_its_state": _SharesItsState,
    "unscales_twice": _UnscalesTwice,
    "unscales_only_in_step": _UnscalesOnlyInStep,
    "step_does_not_unscale": _StepDoesNotUnscale,
    "unscales_only_once": _UnscalesOnlyOnce,
    "never_forgets_unscale": _NeverForgetsUnscale,
    "forgets_overflow_after_unscale": _StepsWithoutLookingAfterUnscale,
    "multiplies_by_scale": _MultipliesByScale,
    "ignores_nan": _IgnoresNan,
    "ignores_inf": _IgnoresInf,
    "looks_at_the_loss": _LooksAtTheLoss,
    "last_gradient_decides": _LastGradientDecides,
    "first_group_only": _FirstGroupOnly,
    "steps_anyway": _StepsAnyway,
    "clears_instead_of_skipping": _ClearsInsteadOfSkipping,
    "skips_for_ever": _SkipsForEver,
    "keeps_count_after_skip": _KeepsCountAfterSkip,
    "keeps_count_after_growth": _KeepsCountAfterGrowth,
    "grows_early": _GrowsEarly,
    "grows_late": _GrowsLate,
    "never_backs_off": _NeverBacksOff,
    "changes_before_update": _ChangesBeforeUpdate,
    "backs_off_late": _BacksOffLate,
}
