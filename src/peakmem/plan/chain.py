"""Chains of stages: the time and bytes of each stage, forward and backward.

A stage is one step of an nn.Sequential: a layer, a block, or the loss at the end. Every planner
works with these figures; `peakmem.measure.trace.chain_of` measures them. They leave weights out:
weights stay on the device under every plan, so a plan's budget covers everything else.

The model follows Beaumont et al. (2019), "Optimal checkpointing for heterogeneous chains: how to
train deep neural networks with limited memory", section 3, and adds the parameters' gradients.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

__all__ = ["Chain", "Stage"]


@dataclass(frozen=True)
class Stage:
    """One stage: how long its steps take, and how much memory they need and leave occupied.

    Times are in one unit throughout, such as seconds. With the first four fields alone, gradients
    and temporaries are 0, as in lab 4. With the first three alone, as in lab 6, the next stage
    doesn't read this stage's saved tensors.

    Raises ValueError if a time or size is negative, or if saved_bytes < output_bytes.

    >>> Stage(forward_time=1.0, backward_time=2.0, saved_bytes=300, output_bytes=100).saved_bytes
    300
    """

    #: Time of one forward.
    forward_time: float
    #: Time of the backward alone, without recomputation.
    backward_time: float
    #: All tensors saved for backward, and the output. Parameters are left out, and so is the input,
    #: which is the output of the stage before.
    saved_bytes: int
    #: The output alone: all that stays after a forward that saves nothing.
    output_bytes: int = 0
    #: The gradient of the output, which backward consumes.
    gradient_bytes: int = 0
    #: The gradients of the parameters, which stay after backward.
    parameter_gradient_bytes: int = 0
    #: Peak of a forward that saves its tensors, beyond `saved_bytes`.
    keep_extra_bytes: int = 0
    #: Peak of a forward that saves nothing, beyond `output_bytes`.
    forward_extra_bytes: int = 0
    #: Peak of backward beyond everything live when it begins, its input's gradient, and its
    #: parameters' gradients. Negative if backward frees saved tensors before it makes the last
    #: gradient.
    backward_extra_bytes: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "backward_extra_bytes" and not value >= 0:
                raise ValueError(f"expected {field.name} of at least 0, but got {value!r}")
        if self.saved_bytes < self.output_bytes:
            raise ValueError(
                f"saved_bytes ({self.saved_bytes:,}) are below output_bytes "
                f"({self.output_bytes:,}); count the output among the saved bytes"
            )


@dataclass(frozen=True)
class Chain:
    """Stages that run one after another, and the size of the first stage's input.

    Raises ValueError if there are no stages or a size is negative.

    >>> chain = Chain((Stage(1.0, 2.0, 300, 100), Stage(1.0, 2.0, 100, 100)))
    >>> len(chain), chain.work_time
    (2, 6.0)
    """

    #: The stages in forward order.
    stages: tuple[Stage, ...]
    #: The input; the caller holds it, so it is live throughout.
    input_bytes: int = 0
    #: The gradient of the input; 0 if the input needs none.
    input_gradient_bytes: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        if not self.stages:
            raise ValueError("a chain needs at least one stage, but got none")
        if min(self.input_bytes, self.input_gradient_bytes) < 0:
            raise ValueError(
                f"expected input_bytes and input_gradient_bytes of at least 0, but got "
                f"{self.input_bytes} and {self.input_gradient_bytes}"
            )

    def __len__(self) -> int:
        return len(self.stages)

    @property
    def work_time(self) -> float:
        """Time of one forward and one backward of every stage: no plan is faster."""
        return sum(stage.forward_time + stage.backward_time for stage in self.stages)

    def backward_makes(self, stage: int) -> int:
        """Return the bytes that a stage's backward allocates and leaves behind.

        These are the gradients of its input and its parameters. The last stage's backward also
        allocates the gradient of the chain's output.
        """
        here = self.stages[stage]
        before = self.stages[stage - 1].gradient_bytes if stage else self.input_gradient_bytes
        of_output = here.gradient_bytes if stage == len(self) - 1 else 0
        return of_output + before + here.parameter_gradient_bytes

    def backward_frees(self, stage: int) -> int:
        """Return the bytes that a stage's backward frees when it ends, without a held input."""
        return self.stages[stage].saved_bytes + self.stages[stage].gradient_bytes

    def backward_takes(self, stage: int) -> int:
        """Return the peak of a stage's backward beyond what was live when it began, in bytes."""
        made = self.backward_makes(stage)
        extra = self.stages[stage].backward_extra_bytes
        return max(made + extra, made - self.backward_frees(stage), 0)

    @classmethod
    def of(cls, stages: Iterable[object]) -> Chain:
        """Return a chain of objects with the attributes forward_time, saved_bytes, output_bytes.

        backward_time is optional and defaults to 0; other attributes are ignored.

        >>> from types import SimpleNamespace
        >>> len(Chain.of([SimpleNamespace(forward_time=1, saved_bytes=3, output_bytes=1)]))
        1
        """
        return cls(
            tuple(
                Stage(
                    forward_time=s.forward_time,  # type: ignore[attr-defined]
                    backward_time=getattr(s, "backward_time", 0.0),
                    saved_bytes=s.saved_bytes,  # type: ignore[attr-defined]
                    output_bytes=s.output_bytes,  # type: ignore[attr-defined]
                )
                for s in stages
            )
        )
