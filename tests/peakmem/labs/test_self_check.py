"""Self-checks print a line per case, say the hint first, and agree with the judges."""

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbgrader.validator import Validator

from autograder.model.compare import by_reference
from autograder.model.task import Answer
from autograder.model.task import Case as Asked
from peakmem.core.errors import RankError, RanksTimeout
from peakmem.labs import Case, SelfCheckFailed, close, self_check, whole
from peakmem.probes import call_each


def total(a, b):
    return a + b


def not_there(a, b):
    raise NotImplementedError


def printed(capsys, function, cases, **options):
    """The lines of a self-check, and its exception's message ("" if it passes)."""
    try:
        self_check(function, cases, **options)
    except SelfCheckFailed as error:
        return capsys.readouterr().out.splitlines(), str(error)
    return capsys.readouterr().out.splitlines(), ""


def test_each_case_has_its_line_and_a_failure_stops_none(capsys):
    cases = [
        Case((1, 2), 3),
        Case((2, 2), 5, "Mind the carry."),
        Case((2, 3), kwargs={}, raises=ValueError, label="two and three"),
        Case(("a",), "ab", kwargs={"b": "b"}),
    ]
    lines, message = printed(capsys, total, cases)
    assert lines == [
        "✔ total(1, 2) → 3",
        "✘ total(2, 2)",
        "    Mind the carry.",
        "    Expected 5, but got 4.",
        "✘ two and three",
        "    Expected a ValueError, but got 5.",
        "✔ total('a', b='b') → 'ab'",
    ]
    assert message == "Mind the carry. total(2, 2): Expected 5, but got 4. 2 of 4 cases fail."


def test_a_missing_return_is_named(capsys):
    def forgets(a, b):
        a + b

    def doubled(a, b):
        return 2 * forgets(a, b)

    def alive(a, b):
        return None

    assert printed(capsys, forgets, [Case((1, 2), 3)])[1].endswith("None. Is a return missing?")
    assert printed(capsys, doubled, [Case((1, 2), 6)])[1].endswith(" Is a return missing?")
    assert not printed(capsys, forgets, [Case((1, 2), 3, function=alive)])[1].endswith("?")


def test_a_result_that_a_mistake_leads_to_has_its_own_hint(capsys):
    case = Case((2, 2), 5, "In general.", wrong={4: "In particular."})
    assert printed(capsys, total, [case])[1].startswith("In particular. ")
    assert printed(capsys, lambda a, b: 7, [case])[1].startswith("In general. ")


def test_of_two_dicts_only_the_keys_that_differ_are_shown(capsys):
    right = {"values": "1 2 3 " * 40, "grad_enabled": True}
    message = printed(capsys, lambda: right | {"grad_enabled": False}, [Case((), right)])[1]
    assert "Expected {'grad_enabled': True}, but got {'grad_enabled': False}." in message
    assert "The other keys are right." in message
    message = printed(capsys, lambda: {"values": right["values"], "extra": 1}, [Case((), right)])[1]
    assert "Expected {'grad_enabled': True}, but got {'extra': 1}. The other keys" in message
    message = printed(capsys, lambda: {"a": 2}, [Case((), {"a": 1})])[1]
    assert "other keys" not in message
    message = printed(capsys, lambda: {"a": 1, "sum": 1}, [Case((), {"a": 1}, "One is odd.")])[1]
    assert message.startswith("Return the keys that are asked for, and no others.")


def test_after_a_failure_only_the_hints_of_known_mistakes_are_sure(capsys):
    cases = [
        Case((2, 2), 5, "Mind the carry."),
        Case((2, 3), 6, "Add both."),
        Case((3, 3), 7, "In general.", wrong={6: "In particular."}),
    ]
    lines, message = printed(capsys, total, cases)
    hints = [line.strip() for line in lines[1::3]]
    assert hints == [
        "Mind the carry.",
        "Perhaps the same cause. If not: Add both.",
        "In particular.",
    ]
    assert message.startswith("Mind the carry. total(2, 2): ")


def test_what_is_not_written_is_said_once_and_the_rest_is_not_reached(capsys):
    cases = [Case((1, 2), 3), Case((2, 2), 4), Case((1, 1), 2, function=total)]
    lines, message = printed(capsys, not_there, cases)
    assert lines == [
        "✘ not_there(1, 2)",
        "    not_there is not written yet.",
        "· not_there(2, 2): not reached",
        "✔ total(1, 1) → 2",
    ]
    assert message == "not_there is not written yet."


def test_an_earlier_exercise_that_is_not_written_is_named(capsys):
    _, message = printed(capsys, lambda a: not_there(a, a), [Case((1,), 2)])
    assert message == "not_there is not written yet."


def test_an_operation_that_torch_lacks_is_an_error_not_an_unwritten_function(capsys):
    lines, message = printed(capsys, lambda x: x << 4, [Case((torch.ones(1),), 2, "Use uint8.")])
    assert message.startswith("Use uint8. ")
    assert "raised RuntimeError" in message
    assert "not written" not in "".join(lines)
    (outcome,) = call_each(lambda: torch.ones(1) << 4, [[]])
    assert outcome[:2] == ("raised", "RuntimeError")
    (outcome,) = call_each(not_there, [[1, 2]])
    assert outcome[:2] == ("raised", "NotImplementedError")


def test_a_backward_that_is_not_written_is_named(capsys):
    class Stub(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, gradient):
            raise NotImplementedError("your code comes here")

    def slope(x):
        Stub.apply(x.clone().requires_grad_()).sum().backward()

    _, message = printed(capsys, slope, [Case((torch.ones(1),), 2)])
    assert message == "backward is not written yet."


def test_an_error_is_shown_with_the_students_own_line(capsys):
    names = {}
    exec(compile("def broken(x):\n    y = x + ''\n    return y\n", "<cell>", "exec"), names)
    _, message = printed(capsys, names["broken"], [Case((1,), 2, "Add numbers.")])
    assert message.startswith("Add numbers. broken(1): Expected 2, but your function raised TypeE")
    assert "line 2, in broken" in message


def test_a_result_that_is_no_plain_data_is_no_error_of_the_function(capsys):
    _, message = printed(capsys, iter, [Case(([4],), [4], "Return a list.")])
    assert "Expected [4], but your result can't be graded: a value of type list_it" in message


def test_the_same_error_is_shown_once(capsys):
    cases = [Case((1,), 2, "Add numbers"), Case((2,), 3), Case(("a",), "b")]
    lines, message = printed(capsys, lambda x: x + (), cases)  # noqa: RUF005
    assert lines[3:] == ["✘ <lambda>(2): the same error", *lines[4:]]
    assert "can only concatenate str" in lines[5]
    assert message.startswith("Add numbers. <lambda>(1): Expected 2, but your function raised")


def test_a_changed_argument_fails_the_case(capsys):
    def sort(values):
        values.sort()
        return values

    assert "changed its argument number 1" in printed(capsys, sort, [Case(([2, 1],), [1, 2])])[1]
    assert printed(capsys, sorted, [Case(([2, 1],), [1, 2])])[1] == ""


def test_a_changed_tensor_fails_the_case(capsys):
    def double(x):
        return x.mul_(2)

    plain = Case((torch.tensor([1.0]),), [2.0])
    followed = Case((torch.tensor([1.0], requires_grad=True),), [2.0])  # a leaf has no plain value
    assert printed(capsys, lambda x: 2 * x.detach(), [plain, followed])[1] == ""
    assert "changed its argument number 1" in printed(capsys, double, [plain])[1]


def test_a_case_whose_arguments_are_no_tuple_is_refused():
    with pytest.raises(TypeError, match=r"args is 3; expected a tuple .* \(3,\)"):
        Case(3, 4)


_GOT = [
    *(3, 3.0, True, np.int64(3), np.float32(3), np.array(3), torch.tensor(3), "3", None, -3),
    *([1, 2], (1, 2), np.array([1, 2]), torch.tensor([1.0, 2.0]), [1, 2.5], {1, 2}, {"a": 1}),
    *(0.0, -0.0, 0, float("nan"), 1e400, {"a": np.float64(1), "b": 2}),
]
_EXPECTED = [3, 3.0, True, 0.0, -0.0, float("nan"), [1, 2], (1.0, 2.0), {1, 2}, {"a": 1}, None]


@pytest.mark.parametrize("equal", [None, whole(), close(1e-6)], ids=["same", "whole", "close"])
def test_self_checks_agree_with_the_judge(capsys, equal):
    options = {} if equal is None else {"equal": equal}
    verdicts = set()
    for expected in _EXPECTED:
        judge = by_reference(lambda expected=expected: expected, **options)
        for got in _GOT:
            answer = Answer(call_each(lambda got=got: got, [()]))
            judged = judge(Asked(("right",), {"calls": [()]}), answer)["right"].ok
            passed = not printed(
                capsys, lambda got=got: got, [Case((), expected, label="it")], **options
            )[1]
            assert passed is judged, (expected, got)
            verdicts.add(judged)
    assert verdicts == {True, False}


def test_an_exception_of_another_type_is_wrong_to_both(capsys):
    def raises(kind):
        def function():
            raise kind("no")

        return function

    judge = by_reference(raises(ValueError))
    for kind in (ValueError, UnicodeError, KeyError):
        answer = Answer(call_each(raises(kind), [()]))
        judged = judge(Asked(("right",), {"calls": [()]}), answer)["right"].ok
        passed = not printed(capsys, raises(kind), [Case((), raises=ValueError)])[1]
        assert passed is judged is (kind is ValueError)


def test_jupyter_shows_the_message_without_a_traceback_and_validate_cuts_none_of_it():
    hint = "Each storage counts once, however many of the saved tensors are views that share it."
    shell = InteractiveShell()
    shell.user_ns |= {"self_check": self_check, "Case": Case, "hint": hint}
    with capture_output() as captured:
        shell.run_cell("self_check(abs, [Case((-8000,), 4000, hint)])")
    assert "Traceback" not in captured.stdout
    shown = SelfCheckFailed(f"{hint} abs(-8000): Expected 4000, but got 8000.")
    text = "\n".join(shown._render_traceback_())
    assert Validator()._indent(text).split() == str(shown).split()
    long = Validator()._indent(str(shown))
    assert long.endswith("..."), "the same in one line would be cut"


def waits(x):
    raise RanksTimeout("ranks 0, 1 wait forever", where={0: "recv", 1: "recv"})


def test_where_ranks_wait_for_ever_no_other_case_is_tried(capsys):
    with pytest.raises(SelfCheckFailed, match="Ranks 0, 1 wait"):
        self_check(waits, [Case((1,), 1, "Who sends?"), Case((2,), 2), Case((3,), 3, function=abs)])
    assert capsys.readouterr().out.splitlines() == [
        "✘ waits(1)",
        "    Who sends?",
        "    Ranks 0, 1 wait forever",
        "· waits(2): not reached",
        "· abs(3): not reached",
    ]


def unwritten(x):
    error = RankError("rank 0 raised", rank=0, kind="NotImplementedError", function="ring")
    raise NotImplementedError from error


def test_what_is_not_written_in_a_rank_is_named(capsys):
    with pytest.raises(SelfCheckFailed):
        self_check(unwritten, [Case((1,), 1)])
    assert "ring is not written yet." in capsys.readouterr().out


def fails_in_a_rank(kind):
    said = f"rank 0 raised {kind}: sizes differ\n  File lab.py, line 3, in ring"
    raise RankError(said, rank=0, kind=kind, function="ring")


def test_an_error_of_ranks_is_told_once_and_another_in_full(capsys):
    kinds = ["TypeError", "TypeError", "KeyError"]
    said, _ = printed(capsys, fails_in_a_rank, [Case((kind,), 1) for kind in kinds])
    assert [line for line in said if line.startswith("    ")] == [
        "    Expected 1, but your function raised RankError: rank 0 raised TypeError: sizes differ",
        "    Expected 1, but your function raised RankError: rank 0 raised KeyError: sizes differ",
    ]
