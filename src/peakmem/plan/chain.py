"""A chain of stages: what each one costs in time and bytes, forward and backward.

A stage is one step of an nn.Sequential: a layer, a block, or the loss at the end. These are the
figures that every planner works with; `peakmem.measure.trace.chain_of` measures them. Weights are
not in them: they stay on the device whatever the plan, so a plan's budget is for what comes on top.

The model is that of Beaumont et al. (2019), "Optimal checkpointing for heterogeneous chains: how to
train deep neural networks with limited memory", section 3, with the gradients of parameters added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

__all__ = ["Chain", "Stage"]


@dataclass(frozen=True)
class Stage:
    """One stage: how long its steps take, and what they take and leave in memory.

    Times are in any one unit, such as seconds. With the first four figures alone, gradients and
    temporary tensors count nothing, as in lab 4. With the first three, as in lab 6, the next stage
    reads nothing of what this one saved.

    Raises ValueError for a negative time or size, and where saved_bytes < output_bytes.

    >>> Stage(forward_time=1.0, backward_time=2.0, saved_bytes=300, output_bytes=100).saved_bytes
    300
    """

    forward_time: float
    #: The time of a backward that recomputes nothing.
    backward_time: float
    #: What stays after a forward that keeps all for backward: every tensor that the graph holds,
    #: and the output. Left out are parameters, and the input, which is the last stage's output.
    saved_bytes: int
    #: The output alone, which is what a forward that keeps nothing leaves.
    output_bytes: int = 0
    #: The gradient of the output, which backward takes in.
    gradient_bytes: int = 0
    #: The gradients of the parameters, which backward leaves behind.
    parameter_gradient_bytes: int = 0
    #: The most that a forward which keeps all holds beyond `saved_bytes`.
    keep_extra_bytes: int = 0
    #: The most that a forward which keeps nothing holds beyond `output_bytes`.
    forward_extra_bytes: int = 0
    #: The most that backward takes beyond all that was live as it began, the gradient of its input,
    #: and those of its parameters. It is below 0 if backward frees saved tensors before it makes
    #: the last gradient.
    backward_extra_bytes: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "backward_extra_bytes" and not value >= 0:
                raise ValueError(f"expected {field.name} of at least 0, but got {value!r}")
        if self.saved_bytes < self.output_bytes:
            raise ValueError(
                f"saved_bytes ({self.saved_bytes:,}) are below output_bytes "
                f"({self.output_bytes:,}); count the output among what the stage saves"
            )


@dataclass(frozen=True)
class Chain:
    """Stages that run one after another, and what goes into the first.

    Raises ValueError for a chain without stages.

    >>> chain = Chain((Stage(1.0, 2.0, 300, 100), Stage(1.0, 2.0, 100, 100)))
    >>> len(chain), chain.work_time
    (2, 6.0)
    """

    stages: tuple[Stage, ...]
    #: The input, which the caller holds, so it is live all the time.
    input_bytes: int = 0
    #: What the backward of the first stage leaves; 0 if the input needs no gradient.
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
        """One forward and one backward of every stage: the least time of any plan."""
        return sum(stage.forward_time + stage.backward_time for stage in self.stages)

    def backward_makes(self, stage: int) -> int:
        """Bytes that the backward of a stage makes and leaves.

        They are the gradients of its input and its parameters; before the last stage's backward,
        the gradient of the chain's output is made too.
        """
        here = self.stages[stage]
        before = self.stages[stage - 1].gradient_bytes if stage else self.input_gradient_bytes
        of_output = here.gradient_bytes if stage == len(self) - 1 else 0
        return of_output + before + here.parameter_gradient_bytes

    def backward_frees(self, stage: int) -> int:
        """Bytes that the backward of a stage gives up as it ends, but for a held input."""
        return self.stages[stage].saved_bytes + self.stages[stage].gradient_bytes

    def backward_takes(self, stage: int) -> int:
        """The most that the backward of a stage takes beyond what was live as it began."""
        made = self.backward_makes(stage)
        extra = self.stages[stage].backward_extra_bytes
        return max(made + extra, made - self.backward_frees(stage), 0)

    @classmethod
    def of(cls, stages: Iterable[object]) -> Chain:
        """Return a chain of anything with the attributes forward_time, saved_bytes, output_bytes.

        A stage without backward_time takes no time backward; other attributes are not read.

        >>> from types import SimpleNamespace
        >>> len(Chain.of([SimpleNamespace(forward_time=1, saved_bytes=3, output_bytes=1)]))
        1
        """
        return cls(
            tuple(
                Stage(
                    s.forward_time,  # type: ignore[attr-defined]
                    getattr(s, "backward_time", 0.0),
                    s.saved_bytes,  # type: ignore[attr-defined]
                    s.output_bytes,  # type: ignore[attr-defined]
                )
                for s in stages
            )
        )
