"""What one exercise is graded on (Task), and the outcome of grading it (Verdict)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from autograder.model.restrictions import NOTHING_BANNED, Ban

__all__ = [
    "NOT_WRITTEN",
    "Answer",
    "Budget",
    "Case",
    "Finding",
    "Lab",
    "Memory",
    "Status",
    "Task",
    "Verdict",
]

Memory = Literal["", "within", "refused"]
#: The last one is given when grades are published, to what a course leaves out.
Status = Literal[
    "right",
    "partly",
    "wrong",
    "unanswered",
    "needs_gpu",
    "needs_isolation",
    "could_not_judge",
    "left_out",
]


@dataclass(frozen=True)
class Budget:
    """The memory that one call of a probe may add to its process, what the probe makes included.

    `window_bytes` of address space may be taken beside it, for files that are mapped to be read.
    `files` says whether anything may be written to files.
    """

    bytes: int
    window_bytes: int = 0
    files: bool = False


@dataclass(frozen=True)
class Case:
    """One call of a task's probe, and the parts of the exercise that its answer decides.

    `inputs` are the probe's keyword arguments, plain data; `secret` is what the judge and the
    replies to questions go by, and never leaves the grader. A drawn case may be shown to the
    student who failed it; a `fixed` one, the same for everybody, never is. With a `budget`, the
    kernel refuses memory beyond it; the probe then takes a further argument `metered`, which says
    whether to measure as well, to name a mistake.
    """

    parts: tuple[str, ...]
    inputs: Mapping[str, Any]
    secret: Mapping[str, Any] = field(default_factory=dict)
    fixed: bool = False
    budget: Budget | None = None


@dataclass(frozen=True)
class Answer:
    """What came back from one call of a probe: a value, or an exception, or nothing at all.

    `raised` is the exception as (type's name, message, traceback of the student's own lines).
    `lost` says why there is no answer: the process was stopped, or what it sent was no plain data;
    with `busy`, the machine was too busy for anybody to say whether the student's code was in time.
    `asked` are the questions the probe put while it ran, each with the reply it got.
    `memory` says what became of the case's budget: "within" it, or "refused" memory by the kernel,
    and then the value is that of a second, metered call without it. It is empty where no kernel
    enforced it, so that only the meter's figures tell. `doubt` says why a call that stayed within
    its budget proves nothing. `traffic_bytes` went between a task's ranks over the submission's own
    network, as the kernel counted them; None where there is no such network. `rank_sent_bytes` are
    what each rank wrote, to connections mostly, in no particular order; none where nobody may know.
    `rank_held_bytes` are by how much the memory of each grew from before the call until all had
    returned, in the same order.
    `beside_solutions` tells that reference solutions of other exercises were in the process, so
    that nothing that came back may be shown to students.
    """

    value: Any = None
    raised: tuple[str, str, str] | None = None
    lost: str | None = None
    busy: bool = field(default=False, kw_only=True)
    asked: tuple[tuple[Any, Any], ...] = ()
    memory: Memory = ""
    doubt: str = ""
    traffic_bytes: int | None = field(default=None, kw_only=True)
    rank_sent_bytes: tuple[int, ...] = field(default=(), kw_only=True)
    rank_held_bytes: tuple[int, ...] = field(default=(), kw_only=True)
    beside_solutions: bool = field(default=False, kw_only=True)

    @property
    def is_held_against(self) -> bool:
        """Whether what was there before the call, not the call itself, leaves it in doubt."""
        return bool(self.doubt) and self.memory == "within"

    def metered(self, *names: str) -> int | None:
        """Return the sum of figures that the meter put into the value; None if one is missing."""
        value = self.value if isinstance(self.value, Mapping) else {}
        figures = [value.get(name) for name in names]
        known = [f for f in figures if type(f) is int and abs(f) < 2**63]  # others are forged
        return sum(known) if len(known) == len(names) else None

    def breaks_budget(self, metered_bytes: int | None, most_bytes: int) -> bool:
        """Tell whether the call took too much memory: by the kernel's word, else by the meter's."""
        if self.memory:
            return self.memory == "refused"
        return metered_bytes is None or metered_bytes > most_bytes


@dataclass(frozen=True)
class Finding:
    """What a judge says of one answer, for one part.

    `said` is for the student: what was expected, what came back; it is shown for drawn cases only.
    `points` are what a part that is not ok still earns.
    `mistakes` are the ids of all mistakes that would have produced this very answer.
    `doubt` says why a measured figure cannot be believed; the part then cannot be judged.
    """

    ok: bool
    said: str = ""
    mistakes: tuple[str, ...] = ()
    doubt: str = ""
    points: float = 0.0


NOT_WRITTEN = Finding(False, "Not written yet: the cell still raises NotImplementedError.")


@dataclass(frozen=True)
class Task:
    """One graded exercise.

    `id` is nbgrader's grade_id too, such as `lab01-decode_fp32`. `parts` maps each part to its
    points; a part is earned when all cases that decide it pass. `defines` are the names that the
    student writes. `probe` is the name of a function in `peakmem.probes.labNN`, or empty where the
    answer is what a cell of the notebook shows. `cases(rng)` draws
    the inputs, `judge(case, answer)` says of each part of the case whether it is right; it is
    called only with an answer that has a value. `mistakes` maps a mistake's id to the sentence a
    student reads, the likeliest first. `ask(case)` makes the function that replies to the
    probe's questions, where it has any. A `measured` task has cases with a budget, or, on a GPU,
    trusts figures taken in the student's process. One with `ranks` has a probe that starts
    processes which talk to each other, in the sandbox over a network of the submission's own: as
    many as the input `world` of each case says. A budget holds for each of them.
    """

    id: str
    parts: Mapping[str, float]
    defines: tuple[str, ...]
    probe: str
    cases: Callable[[np.random.Generator], list[Case]]
    judge: Callable[[Case, Answer], Mapping[str, Finding]]
    mistakes: Mapping[str, str] = field(default_factory=dict)
    ban: Ban = NOTHING_BANNED
    ask: Callable[[Case], Callable[[Any], Any]] | None = None
    trust: Literal["value", "measured"] = "value"
    needs_gpu: bool = False
    ranks: bool = False
    #: Whether it lies beyond the core, so that a course may make it a bonus or leave it out.
    stretch: bool = False
    seconds: float = 10.0

    @property
    def points(self) -> float:
        return sum(self.parts.values())

    @property
    def name(self) -> str:
        """The id without its lab, as the bank's folders are named: `decode_fp32`."""
        return self.id.partition("-")[2]

    @property
    def probe_path(self) -> str:
        """The probe as `Student.run` takes it: `peakmem.probes.lab01:decode_fp32`."""
        return f"peakmem.probes.{self.id.partition('-')[0]}:{self.probe}"


@dataclass(frozen=True)
class Lab:
    """A lab's tasks, in the order of its notebook.

    `hides` are the modules that hold this lab's answers: in the sandbox they cannot be imported.
    `allows` are modules, or names in modules, that its solutions may use beside those that all may
    (`autograder.model.allowed`), such as what its given cells import of peakmem.
    """

    name: str
    tasks: tuple[Task, ...]
    hides: tuple[str, ...] = ()
    allows: tuple[str, ...] = ()

    @property
    def stretch(self) -> frozenset[str]:
        """The ids of the tasks beyond the core."""
        return frozenset(task.id for task in self.tasks if task.stretch)

    @property
    def ranks(self) -> bool:
        """Whether any of its tasks has ranks, which opens the sandbox for processes that talk."""
        return any(task.ranks for task in self.tasks)

    @property
    def number(self) -> str:
        """`lab01` of `lab01_formats`: what its task ids and its probes' module begin with."""
        return self.name.partition("_")[0]


@dataclass(frozen=True)
class Verdict:
    """What a student gets for one task: points by part, and one message in words."""

    task: str
    status: Status
    earned: Mapping[str, float]
    max_points: float
    message: str
    mistake: str | None = None

    @property
    def points(self) -> float:
        return sum(self.earned.values())
