"""Judges check every part of an answer: they notice a change to any leaf of a right one.

The answers of the bank's first right file are changed leaf by leaf. A student's process may forge
leaves that no judge checks, so UNSEEN lists each of them with a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.content import find_lab, lab_names, lab_of
from autograder.model.judge import judge_answer
from autograder.model.task import Answer, Case, Finding, Task
from autograder.sandbox.host.in_process import LocalStudent
from tests.answers import first_right

TASKS = [task for name in lab_names() for task in find_lab(name).tasks if not task.needs_gpu]
LEAVES = 8  # of a case, drawn with a fixed seed
# Starting processes takes long, and so do an answer's many small operations.
NOT_EACH_TIME = {
    *(task.id for task in TASKS if task.ranks and task.id != "lab08-ring_all_reduce"),
    "lab09-adam8bit",
}


@dataclass(frozen=True)
class Unseen:
    """Leaves at and below a path that decide nothing, in cases of these parts (any, if empty).

    With `if_missing`, they decide nothing only if they are left out.
    """

    task: str
    path: str
    why: str
    parts: tuple[str, ...] = ()
    if_missing: bool = False

    def covers(self, task: Task, case: Case, path: str, new: Any) -> bool:
        return (
            self.task == task.id
            and path.startswith(self.path)
            and (not self.parts or self.parts == case.parts)
            and (not self.if_missing or new is MISSING)
        )


OTHER_PART = "the cases of another part decide it"
LATER = "only names a mistake, or another part decides it"
ABSENT = "absence says that all is well"
SMALL_OF_BOTH = ("same results", "peak below the bound")
_NOTHING_LEFT = "nothing left on the host"
UNSEEN = [
    Unseen("lab07-loss_scaler", "[*].parameters", OTHER_PART, ("trajectory",)),
    *(
        Unseen("lab07-loss_scaler", f"[*].{name}", OTHER_PART, ("unscale before clipping",))
        for name in ("before", "scale", "calls", "left")
    ),
    *(
        Unseen("lab07-loss_scaler", f"[*].{name}", OTHER_PART, ("trajectory",))
        for name in ("calls", "left")
    ),
    Unseen(
        "lab07-loss_scaler",
        "[*].unscaled",
        "unscale_ was not called, and its absence says the same",
        ("trajectory", "skipped steps"),
    ),
    Unseen("lab07-loss_scaler", "[*].unscaled", OTHER_PART, ("trajectory",)),
    *(
        Unseen(f"lab03-{step}", f"[*].{name}", ABSENT, if_missing=True)
        for step in ("adam_step", "lean_adam_step")
        for name in ("changed", "stands", "restarts")
    ),
    Unseen("lab03-adam_step", "[*].state_used", LATER),
    Unseen("lab03-lean_adam_step", "[*].state_used", LATER),
    Unseen("lab03-lean_adam_step", ".models[*].state_used", LATER),
    Unseen("lab03-lean_adam_step", ".models[*].changed", ABSENT, if_missing=True),
    Unseen("lab03-step_in_backward", ".gradients_left", LATER),
    Unseen("lab04-checkpoint", ".after", LATER),
    Unseen("lab04-checkpoint", ".calls", LATER),
    Unseen("lab04-checkpoint", ".gradients", LATER),
    Unseen("lab04-checkpoint", ".rise_bytes", LATER),
    Unseen("lab04-recompute_attention", ".kept_bytes", LATER),
    Unseen("lab04-recompute_attention", ".fused", OTHER_PART, ("gradients",)),
    Unseen("lab04-recompute_attention", ".softmax", OTHER_PART, ("gradients",)),
    Unseen("lab05-largest_micro_batch", "[*]", LATER),
    Unseen("lab05-accumulate_gradients", ".sizes", LATER),
    Unseen("lab05-accumulate_gradients", ".value", LATER),
    Unseen("lab05-accumulate_gradients", ".waiting", LATER),
    Unseen("lab05-accumulate_token_mean", ".gradients", LATER),
    Unseen("lab05-accumulate_token_mean", ".sizes", LATER),
    Unseen("lab05-train_epoch", ".events", OTHER_PART, ("leftovers",)),
    Unseen("lab05-train_epoch", ".gradients", LATER),
    Unseen("lab05-train_epoch", ".waiting", LATER),
    *(
        Unseen(f"{lab[:5]}-find_the_leak", path, OTHER_PART, ("same results",))
        for lab in lab_names()
        for path in (".rise_bytes", ".numpy_rise_bytes")
    ),
    *(
        Unseen("lab07-find_the_leak", path, "the large case decides it", SMALL_OF_BOTH)
        for path in (".rise_bytes", ".numpy_rise_bytes")
    ),
    Unseen("lab06-offloaded_adam", "[*].state_used", LATER),
    Unseen("lab06-offloaded_adam", ".models[*].state_used", LATER),
    *(
        Unseen("lab06-offloaded_adam", f"{path}[*].changed", ABSENT, if_missing=True)
        for path in ("", ".models")
    ),
    Unseen("lab06-stream_forward", ".loads", LATER),
    Unseen("lab06-stream_forward", ".requires_grad", LATER),
    Unseen("lab06-stream_forward", ".x_changed", LATER),
    Unseen("lab06-swap_saved_tensors", ".bytes_in", LATER),
    Unseen("lab06-swap_saved_tensors", ".bytes_out", LATER),
    Unseen("lab06-swap_saved_tensors", ".gradients", LATER),
    Unseen("lab06-swap_saved_tensors", ".live_bytes", LATER),
    Unseen("lab06-swap_saved_tensors", ".live_between_bytes", "only 0 says something"),
    Unseen("lab06-swap_saved_tensors", ".stay_bytes", LATER),
    *(
        Unseen("lab06-swap_saved_tensors", ".after_bytes", OTHER_PART, parts)
        for parts in (("gradients", _NOTHING_LEFT), (_NOTHING_LEFT,))
    ),
    Unseen("lab08-data_parallel", ".ranks[*].start", OTHER_PART, ("no_sync",)),
    *(
        Unseen("lab08-sharded_adam", f".ranks[*].{name}", OTHER_PART, ("state",))
        for name in ("changed", "left", "records")
    ),
    Unseen("lab08-sharded_layers", ".shards", OTHER_PART, ("outputs and updates",)),
    Unseen("lab08-sharded_layers", ".sent_bytes", "in the sandbox, the grader counts by itself"),
    Unseen("lab09-adam8bit", ".repeats", LATER),
    *(
        Unseen("lab10-module_times", f".seconds.{name}", "no time may be left out", if_missing=True)
        for name in ("unused", "parts", "block.act")  # the last is a second name of `act`
    ),
]

Path = tuple[Any, ...]


# Changes of a value

MISSING = "missing"  # in place of a dict's item: its key is left out


@dataclass(frozen=True)
class Changed:
    """A leaf or container at `path`, changed in ways that have each, or one of them, to be seen."""

    path: Path
    each: Sequence[Any]
    one_of: Sequence[Any] = ()


def changes(value: Any, path: Path = ()) -> Iterator[Changed]:
    """All possible changes to a plain value."""
    if isinstance(value, (list, tuple)) and not _is_raised(value):
        if value:
            yield Changed(path, [type(value)(), value[:-1], None])
        for index, item in enumerate(value):
            yield from changes(item, (*path, index))
    elif isinstance(value, dict):
        if value:
            yield Changed(path, [{}, None])
        for key, item in value.items():
            yield Changed((*path, key), [MISSING])
            yield from changes(item, (*path, key))
    else:
        yield Changed(path, *_of_leaf(value))


def _is_raised(value: Sequence[Any]) -> bool:
    """An exception of `call_each`: its message is shown to the student and is nothing more."""
    return len(value) == 3 and type(value[0]) is str and value[0] == "raised"


def _of_leaf(value: Any) -> tuple[list[Any], list[Any]]:
    if isinstance(value, bool):
        return [not value, None], []
    if isinstance(value, int):
        return [None, "no number"], [value + 1, value - 1, -1, 10**15]
    if isinstance(value, float):
        strange = [x for x in (math.nan, math.inf, -math.inf) if repr(x) != repr(value)]
        finite = value if math.isfinite(value) else 0.0
        return [None, "no number", *strange], [finite + 1, finite - 1, 1e30]
    if isinstance(value, str):
        return [f"{value}x", None], []
    if isinstance(value, np.ndarray):
        return _of_array(value)
    if isinstance(value, (list, tuple)):  # an exception
        return [("value", 0.0), None, ("raised", "SomeOtherError", "")], []
    return [3.25], []


def _of_array(array: np.ndarray) -> tuple[list[Any], list[Any]]:
    if not array.size:
        return [None], []
    at = tuple(size // 2 for size in array.shape)

    def with_item(item: Any) -> np.ndarray:
        changed = array.copy()
        changed[at] = item
        return changed

    each = [None, array.reshape(-1)[:0], []]
    if array.dtype.kind == "f":
        each += [with_item(math.nan)] if not np.isnan(array[at]) else []
        return each, [with_item(array[at] + 1), with_item(-1e4)]
    return each, [with_item(array[at] ^ 1), with_item(array[at] ^ 64)]


def changed_at(value: Any, path: Path, new: Any) -> Any:
    """The value with `new` at a path of indices and keys."""
    if not path:
        return new
    first, *rest = path
    if new is MISSING and not rest:
        return {key: item for key, item in value.items() if key != first}
    if isinstance(value, dict):
        return {**value, first: changed_at(value[first], tuple(rest), new)}
    items = list(value)
    items[first] = changed_at(value[first], tuple(rest), new)
    return type(value)(items)


# Judging


def noticed(task: Task, case: Case, answer: Answer, value: Any) -> bool:
    """Tell whether some part is lost with this value; a judge that cannot read it gives nothing."""
    try:
        found = judge_answer(task, case, replace(answer, value=value))
    except Exception:
        return True
    return any(not finding.ok for finding in found.values())


def unnoticed(task: Task, case: Case, answer: Answer, leaves: int) -> Iterator[tuple[str, Any]]:
    """Yield where the answer may be changed, and to what, without a part that is lost."""
    found = list(changes(answer.value))
    if len(found) > leaves:
        rng = np.random.default_rng(len(found))
        found = [found[index] for index in sorted(rng.choice(len(found), leaves, replace=False))]
    for change in found:
        for new in _let_through(task, case, answer, change):
            yield written(change.path), new


def _let_through(task: Task, case: Case, answer: Answer, change: Changed) -> list[Any]:
    def seen(new: Any) -> bool:
        return noticed(task, case, answer, changed_at(answer.value, change.path, new))

    passed = [new for new in change.each if not seen(new)]
    if change.one_of and not any(map(seen, change.one_of)):
        passed += change.one_of
    return passed


def written(path: Path) -> str:
    return "".join("[*]" if isinstance(step, int) else f".{step}" for step in path) or "all"


def right_answers(task_id: str) -> tuple[tuple[Case, Answer], ...]:
    lab = lab_of(task_id)
    task = next(task for task in lab.tasks if task.id == task_id)
    names: dict[str, Any] = {}
    exec(first_right(task), names)
    student = LocalStudent(names)
    cases = task.cases(np.random.default_rng(0))
    asks = [task.ask(case) if task.ask else None for case in cases]
    return tuple(
        (case, student.run(task.probe_path, case.inputs, ask))
        for case, ask in zip(cases, asks, strict=True)
    )


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    "task",
    [
        pytest.param(
            task,
            id=task.id,
            marks=[pytest.mark.slow] * (task.id in NOT_EACH_TIME),
        )
        for task in TASKS
    ],
)
def test_every_leaf_of_a_right_answer_matters_and_nothing_is_never_right(task: Task) -> None:
    """One test for both, since what takes long is to get the right answers."""
    missed = []
    for case, answer in right_answers(task.id):
        assert not noticed(task, case, answer, answer.value), "the answer is right as it is"
        missed += [
            f"{path} as {str(new)[:60]}, in a case of {', '.join(case.parts)}"
            for path, new in unnoticed(task, case, answer, LEAVES)
            if not any(unseen.covers(task, case, path, new) for unseen in UNSEEN)
        ]
        nothing: list[Any] = [None, [], {}, (), math.nan, 0, "", True]
        missed += [f"{v!r}" for v in nothing if not noticed(task, case, answer, v)]
    assert missed == []


# The fuzz itself: judges with the holes that it should find


def _passed(judge: Callable[[Any], bool], value: Any) -> set[str]:
    task = Task(
        id="toy-toy",
        parts={"all": 1},
        defines=(),
        probe="",
        cases=lambda rng: [],
        judge=lambda case, answer: {"all": Finding(judge(answer.value))},
    )
    case = Case(("all",), {})
    return {f"{path} as {new}" for path, new in unnoticed(task, case, Answer(value=value), 100)}


RECORD = {"peak": 2.0, "same": True, "sizes": [3, 4]}


def test_a_judge_that_looks_at_everything_passes() -> None:
    assert _passed(lambda value: value == RECORD, RECORD) == set()


@pytest.mark.parametrize(
    ("judge", "unseen"),
    [
        (lambda v: v["same"] is True and v["sizes"] == [3, 4], ".peak as nan"),
        (
            lambda v: v["same"] is True and not v["peak"] > 2 and v["sizes"] == [3, 4],
            ".peak as nan",
        ),
        (lambda v: 1 < v["peak"] < 3 and v["sizes"] == [3, 4], ".same as False"),
        (lambda v: v["same"] is True and 1 < v["peak"] < 3 and all(v["sizes"]), ".sizes as []"),
        (lambda v: v["same"] is True and 1 < v["peak"] < 3 and 3 in v["sizes"], ".sizes[*] as 5"),
    ],
)
def test_control_each_kind_of_hole_is_found(judge: Callable[[Any], bool], unseen: str) -> None:
    assert unseen in _passed(judge, RECORD)
