"""Pipeline schedules: against the lecture's tables, the bubble's formula, and invariants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.scale.pipelines import SCHEDULES, Operation, Schedule, schedule, violations

# The lecture's tables for 4 stages and 5 micro-batches, the last stage first: slot -> operation.
LECTURE_VARUNA = [
    ". . . F1 B1 F2 B2 F3 B3 . . . F4 B4 F5 B5",
    ". . F1 F2 F3 R1 B1 R2 B2 R3 B3 F4 F5 R4 B4 R5 B5",
    ". F1 F2 F3 F4 F5 . R1 B1 R2 B2 R3 B3 . . . R4 B4 R5 B5",
    "F1 F2 F3 F4 F5 . . . R1 B1 R2 B2 R3 B3 . . R4 B4 R5 B5",
]
LECTURE_GPIPE = [
    ". . . F1 F2 F3 F4 F5 B5 R4 B4 R3 B3 R2 B2 R1 B1",
    ". . F1 F2 F3 F4 F5 . . B5 R4 B4 R3 B3 R2 B2 R1 B1",
    ". F1 F2 F3 F4 F5 . . . . B5 R4 B4 R3 B3 R2 B2 R1 B1",
    "F1 F2 F3 F4 F5 . . . . . . . B5 R4 B4 R3 B3 R2 B2 R1 B1",
]
counts = st.integers(1, 7)


def operations(table: list[str]) -> list[Operation]:
    """A lecture's table as operations of one slot each."""
    return [
        Operation(3 - row, cell[0], int(cell[1]) - 1, slot, slot + 1)
        for row, line in enumerate(table)
        for slot, cell in enumerate(line.split())
        if cell != "."
    ]


def rows(found: Schedule) -> list[str]:
    """A schedule as the lecture prints it."""
    lines = [" ".join(cell or "." for cell in row) for row in found.table()]
    return [line.rstrip(" .") for line in reversed(lines)]


def test_gpipe_is_the_lectures_but_for_one_idle_slot() -> None:
    ours = rows(schedule("gpipe", 4, 5))
    assert ours[:3] == LECTURE_GPIPE[:3]
    assert ours[3] == LECTURE_GPIPE[3].replace(". B5", "B5")
    assert not violations(operations(LECTURE_GPIPE), 4)


def test_varuna_has_the_lectures_last_two_stages() -> None:
    ours = schedule("varuna", 4, 5)
    assert rows(ours)[:2] == LECTURE_VARUNA[:2]
    assert ours.slots == 19


def test_the_lectures_varuna_starts_two_backwards_too_early() -> None:
    assert violations(operations(LECTURE_VARUNA), 4) == [
        "B4 of stage 1 starts in slot 17, before B4 of stage 2 is done",
        "B5 of stage 1 starts in slot 19, before B5 of stage 2 is done",
    ]


@given(st.sampled_from(sorted(SCHEDULES)), counts, counts, st.integers(1, 3), st.integers(1, 3))
def test_every_schedule_can_run_and_does_all_the_work(
    name: str, stages: int, micro_batches: int, forward: int, backward: int
) -> None:
    slots = {"forward_slots": forward, "backward_slots": backward}
    found = schedule(name, stages, micro_batches, **slots)
    assert not violations(found.operations, stages)
    for kind in "FB":
        done = sorted((o.stage, o.micro_batch) for o in found.operations if o.kind == kind)
        assert done == [(s, m) for s in range(stages) for m in range(micro_batches)]
    assert sum(len(row) for row in found.table()) == stages * found.slots
    idle = sum(cell == "" for row in found.table() for cell in row)
    assert found.bubble_fraction == pytest.approx(idle / (stages * found.slots))


@given(st.sampled_from(["gpipe", "1f1b"]), counts, counts)
def test_bubble_is_what_the_papers_say(name: str, stages: int, micro_batches: int) -> None:
    found = schedule(name, stages, micro_batches, recompute=False, backward_slots=2)
    expected = (stages - 1) / (micro_batches + stages - 1)  # GPipe, section 2.3; PTD-P, 2.2.1
    assert found.bubble_fraction == pytest.approx(expected)


@given(counts, counts)
def test_activations_held(stages: int, micro_batches: int) -> None:
    gpipe = schedule("gpipe", stages, micro_batches, recompute=False)
    assert gpipe.peak_activations() == [micro_batches] * stages
    early = schedule("1f1b", stages, micro_batches, recompute=False)
    at_most = [min(stages - stage, micro_batches) for stage in range(stages)]
    assert early.peak_activations() == at_most == early.peak_inputs()
    assert schedule("varuna", stages, micro_batches).peak_activations() == [1] * stages
    assert schedule("gpipe", stages, micro_batches).peak_inputs() == [micro_batches] * stages


def test_a_device_that_does_two_things_at_once_is_found() -> None:
    overlap = [Operation(0, "F", 0, 0, 2), Operation(0, "F", 1, 1, 3)]
    assert violations(overlap, 1) == ["stage 1 does two things in slot 1"]
    same_start = [Operation(0, "F", 0, 0, 2), Operation(0, "F", 1, 0, 2)]
    assert violations(same_start, 1) == ["stage 1 does two things in slot 0"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("zigzag", 4, 5), "unknown schedule 'zigzag'"),
        (("gpipe", 0, 5), "stages"),
        (("gpipe", 4, True), "micro_batches"),
    ],
)
def test_bad_input_is_named(arguments, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        schedule(*arguments)
    with pytest.raises(ValueError, match="Varuna always recomputes"):
        schedule("varuna", 2, 2, recompute=False)
    with pytest.raises(ValueError, match="backward_slots"):
        schedule("gpipe", 2, 2, backward_slots=0)
