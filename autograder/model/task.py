"""The definition of a graded exercise (Task), and the outcome of grading it (Verdict)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from autograder.model.restrictions import NOTHING_BANNED, Ban

__all__ = [
    "CALLS_UNWRITTEN",
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
#: `left_out` is set only when grades are published, for exercises that the course leaves out.
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
    """The memory that one call of a probe may add to its process, the probe's own included."""

    #: Bytes of memory.
    bytes: int
    #: Extra address space, for files mapped for reading.
    window_bytes: int = 0
    #: Whether the call may write to files.
    files: bool = False


@dataclass(frozen=True)
class Case:
    """One call of a task's probe, and the parts of the exercise that its answer decides."""

    #: The parts of the exercise that it decides.
    parts: tuple[str, ...]
    #: The probe's keyword arguments, plain data.
    inputs: Mapping[str, Any]
    #: Data for the judge and for the replies to questions, which never leaves the grader.
    secret: Mapping[str, Any] = field(default_factory=dict)
    #: Whether the case is the same for everybody. Students see a drawn case that they failed, but
    #: never a fixed one.
    fixed: bool = False
    #: What a fixed case tries, without its values: a sentence that begins in lower case. Students
    #: read it if they fail only this case, by a mistake that has no name.
    about: str = field(default="", kw_only=True)
    #: The memory that the kernel allows the call. The probe then takes an extra argument,
    #: `metered`, which says whether to measure memory too, in order to name a mistake.
    budget: Budget | None = None


@dataclass(frozen=True)
class Answer:
    """The outcome of one call of a probe: a value, an exception, or a lost process."""

    #: The value that the probe returned.
    value: Any = None
    #: The exception as (type's name, message, traceback of the student's own lines).
    raised: tuple[str, str, str] | None = None
    #: Why there is no answer: the process was stopped, or it sent something other than plain data.
    lost: str | None = None
    #: Whether `lost` means that the machine was too busy to tell if the code was in time.
    busy: bool = field(default=False, kw_only=True)
    #: The questions that the probe asked while it ran, each with its reply.
    asked: tuple[tuple[Any, Any], ...] = ()
    #: The outcome of the case's budget: `within` it, or `refused` memory by the kernel. In the
    #: second case `value` comes from a second, metered call without the budget. Empty if no kernel
    #: enforced the budget, so that only the meter's figures count.
    memory: Memory = ""
    #: Why a call that stayed within its budget proves nothing.
    doubt: str = ""
    #: Bytes that a task's ranks sent over the submission's own network, counted by the kernel; None
    #: without such a network.
    traffic_bytes: int | None = field(default=None, kw_only=True)
    #: Bytes that each rank wrote, mostly to connections, in no particular order; empty if the
    #: grader may not read them.
    rank_sent_bytes: tuple[int, ...] = field(default=(), kw_only=True)
    #: Growth of each rank's memory from before the call until all ranks had returned, in the same
    #: order.
    rank_held_bytes: tuple[int, ...] = field(default=(), kw_only=True)
    #: Whether reference solutions of other exercises were in the process, so that students may see
    #: nothing of the answer.
    beside_solutions: bool = field(default=False, kw_only=True)
    #: Whether the exercise is written, so that a NotImplementedError comes from something it calls.
    is_written: bool = field(default=False, kw_only=True)

    @property
    def is_held_against(self) -> bool:
        """Whether the doubt comes from the process's state before the call, not from the call."""
        return bool(self.doubt) and self.memory == "within"

    def metered(self, *names: str) -> int | None:
        """Return the sum of the meter's figures with these names; None if one is missing."""
        value = self.value if isinstance(self.value, Mapping) else {}
        figures = [value.get(name) for name in names]
        known = [f for f in figures if type(f) is int and abs(f) < 2**63]  # others are forged
        return sum(known) if len(known) == len(names) else None

    def breaks_budget(self, metered_bytes: int | None, most_bytes: int) -> bool:
        """Tell whether the call took too much memory, according to the kernel or else the meter."""
        if self.memory:
            return self.memory == "refused"
        return metered_bytes is None or metered_bytes > most_bytes


@dataclass(frozen=True)
class Finding:
    """A judge's finding on one answer, for one part."""

    #: Whether the part passes.
    ok: bool
    #: For the student: what was expected and what was returned. Shown only for drawn cases.
    said: str = ""
    #: The ids of all mistakes that would have produced exactly this answer.
    mistakes: tuple[str, ...] = ()
    #: The ids of mistakes that would have failed this case, which the answer passes.
    not_made: tuple[str, ...] = ()
    #: The ids of mistakes that this answer, which passes, rules out in all others. Unlike one that
    #: is only `not_made` here, such a mistake is never named.
    refuted: tuple[str, ...] = field(default=(), kw_only=True)
    #: Why a measured figure can't be trusted; the part then can't be judged.
    doubt: str = ""
    #: The points that a part still earns if it isn't ok.
    points: float = 0.0
    #: Whether the answer says too little to name one of its mistakes: it fits all of them, and only
    #: another answer can show which one was made.
    follows: bool = False


NOT_WRITTEN = Finding(False, "Not written yet: the cell still raises NotImplementedError.")
#: What NOT_WRITTEN means for an exercise that is written.
CALLS_UNWRITTEN = Finding(
    False,
    "Your code raised NotImplementedError: it calls another exercise's function that isn't written "
    "yet, or a given line that raises the error is still there. Write that part first.",
)


@dataclass(frozen=True)
class Task:
    """One graded exercise."""

    #: The task's id, also nbgrader's grade_id, such as `lab01-decode_fp32`.
    id: str
    #: Points by part. A part is earned if all cases that decide it pass.
    parts: Mapping[str, float]
    #: The names that the student defines.
    defines: tuple[str, ...]
    #: The name of a function in `peakmem.probes.labNN`; empty if a cell's output is the answer.
    probe: str
    #: Draws the cases from a random generator.
    cases: Callable[[np.random.Generator], list[Case]]
    #: Judges an answer that has a value: a finding for each part of the case.
    judge: Callable[[Case, Answer], Mapping[str, Finding]]
    #: The sentence that a student reads, by mistake id, most likely mistake first.
    mistakes: Mapping[str, str] = field(default_factory=dict)
    #: The names that the solution may not use.
    ban: Ban = NOTHING_BANNED
    #: Makes the function that replies to the probe's questions, if it asks any.
    ask: Callable[[Case], Callable[[Any], Any]] | None = None
    #: `measured` if cases have a budget, or, on a GPU, if figures taken in the student's process
    #: are trusted.
    trust: Literal["value", "measured"] = "value"
    #: Whether it can be judged only on a GPU.
    needs_gpu: bool = False
    #: Whether the probe starts `world` processes that talk to each other, in the sandbox over the
    #: submission's own network. A case's input gives `world`. A budget holds for each process.
    ranks: bool = False
    #: Whether it lies beyond the core, so that a course may count it as a bonus or leave it out.
    stretch: bool = False
    #: The time limit for one call of the probe.
    seconds: float = 10.0

    @property
    def points(self) -> float:
        return sum(self.parts.values())

    @property
    def name(self) -> str:
        """The id without its lab, as in the answer bank's file names: `decode_fp32`."""
        return self.id.partition("-")[2]

    @property
    def probe_path(self) -> str:
        """The probe as `Student.run` takes it: `peakmem.probes.lab01:decode_fp32`."""
        return f"peakmem.probes.{self.id.partition('-')[0]}:{self.probe}"


@dataclass(frozen=True)
class Lab:
    """A lab's tasks, in the order of its notebook."""

    #: The lab's name, such as `lab01_formats`.
    name: str
    #: The tasks, in the notebook's order.
    tasks: tuple[Task, ...]
    #: Modules that contain this lab's answers, and can't be imported in the sandbox.
    hides: tuple[str, ...] = ()
    #: Modules, or names in modules, that its solutions may use beyond `autograder.model.allowed`,
    #: such as those that its given cells import from peakmem.
    allows: tuple[str, ...] = ()

    @property
    def stretch(self) -> frozenset[str]:
        """The ids of the tasks beyond the core."""
        return frozenset(task.id for task in self.tasks if task.stretch)

    @property
    def ranks(self) -> bool:
        """Whether any of its tasks has ranks, for which the sandbox lets processes talk."""
        return any(task.ranks for task in self.tasks)

    @property
    def number(self) -> str:
        """`lab01` of `lab01_formats`: the start of its task ids and of its probes' module name."""
        return self.name.partition("_")[0]


@dataclass(frozen=True)
class Verdict:
    """The outcome of one task for a student."""

    #: The task's id.
    task: str
    #: The status, by its id.
    status: Status
    #: Points by part.
    earned: Mapping[str, float]
    #: The most points that the task gives.
    max_points: float
    #: The message that the student reads.
    message: str
    #: The id of the recognised mistake, if any.
    mistake: str | None = None

    @property
    def points(self) -> float:
        return sum(self.earned.values())
