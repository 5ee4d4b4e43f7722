"""The bank's check has to fail if an answer isn't graded as it says."""

from pathlib import Path

import pytest
import torch

from autograder.model.task import Case, Finding, Lab, Task
from tests.autograder.content.bank_in_process import check_bank

# Its cases call largest_micro_batch's probe with upper=1, where the grader says that 1 fits.
TASK = Task(
    id="lab05-one",
    parts={"right": 1, "few runs": 1},
    defines=("largest_micro_batch",),
    probe="largest_micro_batch",
    cases=lambda rng: [Case(("right", "few runs"), {"upper": 1})],
    ask=lambda case: lambda question: "fits",
    judge=lambda case, answer: {
        "right": _finding(answer.value[1] == 1),
        "few runs": _finding(answer.value[1] >= 0),
    },
    mistakes={"off": "It is off by one."},
)
LAB = Lab(name="lab05_one", tasks=(TASK,))


def _finding(ok: bool) -> Finding:
    return Finding(ok, mistakes=("off",))


def _bank(folder: Path, **files: str) -> Path:
    task_folder = folder / LAB.name / TASK.name
    task_folder.mkdir(parents=True)
    honest = {f"right_{i}": ('"""Right."""', 1) for i in range(3)}
    honest |= {f"wrong_{i}": ('"""Wrong."""', -1) for i in range(4)}
    honest["wrong_off"] = ('"""Wrong. [earns 1]"""', 0)
    for name, (doc, value) in honest.items():
        code = f"{doc}\ndef largest_micro_batch(run, upper):\n    return {value}\n"
        (task_folder / f"{name}.py").write_text(files.get(name, code))
    return folder


def _returns(value: int, doc: str = '"""An answer."""') -> str:
    return f"{doc}\ndef largest_micro_batch(run, upper):\n    return {value}\n"


def test_an_answer_leaves_autograd_as_it_was(tmp_path: Path) -> None:
    hooks = "torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t).__enter__()"
    source = f"{_returns(1)}import torch\n{hooks}\n"
    check_bank(LAB, TASK, _bank(tmp_path, right_1=source))
    saved = torch.ones(1, requires_grad=True).exp()
    assert saved.grad_fn is not None
    assert saved.grad_fn._saved_result.data_ptr() == saved.data_ptr(), "what is saved is not a copy"


def test_a_bank_graded_as_it_says_passes(tmp_path: Path) -> None:
    check_bank(LAB, TASK, _bank(tmp_path))


@pytest.mark.parametrize(
    ("name", "source", "complaint"),
    [
        ("right_1", _returns(0), "right_1 is right, but earned 1"),
        ("wrong_1", _returns(0), "wrong_1 is wrong, but earned 1"),
        ("wrong_1", _returns(1, '"""Wrong. [earns 1]"""'), "wrong_1 is wrong, but earned 2"),
        ("wrong_off", '"""Wrong."""\nlargest_micro_batch = None', "wrong_off is not recognised"),
        ("wrong_off", _returns(-1, '"""Wrong. [earns 1]"""'), "says that it earns 1, but earned 0"),
    ],
)
def test_a_file_graded_otherwise_fails(
    tmp_path: Path, name: str, source: str, complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        check_bank(LAB, TASK, _bank(tmp_path, **{name: source}))


def test_too_few_answers_fail(tmp_path: Path) -> None:
    bank = _bank(tmp_path)
    (bank / LAB.name / TASK.name / "right_0.py").unlink()
    with pytest.raises(AssertionError, match="3 right ones"):
        check_bank(LAB, TASK, bank)


def test_what_needs_a_gpu_is_skipped_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    task = Task(**{**vars(TASK), "needs_gpu": True})
    with pytest.raises(pytest.skip.Exception, match="need a GPU"):
        check_bank(LAB, task, _bank(tmp_path))
