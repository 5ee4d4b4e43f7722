"""Limits on one submission's files: beyond them, one sentence, and no other submission suffers."""

import json

import pytest

from autograder.base.limits import ANSWER_BYTES, OUTPUT_BYTES, Limits
from autograder.content import find_lab
from autograder.grading.grade import grade
from autograder.notebooks.intake import take_in
from autograder.publish.feedback import feedback_html
from autograder.sandbox.host.sandbox import Sandbox
from autograder.store.journal import Journal
from autograder.store.out_folder import OutFolder
from tests.grading import LAB05, SEARCH, cell_of, code_cell, released, solved

pytestmark = pytest.mark.sandbox
LIMITS = Limits(cell_seconds=60, submission_seconds=600)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(find_lab(LAB05).hides, limits=LIMITS) as prepared:
        yield prepared


@pytest.fixture
def kept(sandbox, tmp_path):
    """Grades a whole notebook and stores it; returns the result and the entry's bytes."""

    def run(notebook):
        raw = json.dumps(notebook).encode()
        submission = take_in("ada", LAB05, raw, released(LAB05))
        graded = grade(find_lab(LAB05), submission, sandbox, b"a course's secret")
        Journal(OutFolder(tmp_path)).keep(graded.result, raw, graded.answers, {}, graded.asked)
        (entry,) = tmp_path.rglob("*.entry")
        return graded.result, entry.stat().st_size

    return run


def answering(body):
    notebook = solved(LAB05)
    source = f"\n\ndef largest_micro_batch(run, upper):\n    {body}"
    cell_of(notebook, f"{SEARCH}-solution")["source"] += source
    return notebook


def only(result, task):
    found = {v.task: v for v in result.verdicts}
    verdict = found.pop(task)
    others = {v.status for v in found.values()}
    return verdict if others == {"right"} and verdict.status == "wrong" else None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return b'x' * 5_000_000", id="bytes", marks=pytest.mark.slow),
        pytest.param("return 'x' * 15_000_000", id="text"),
        pytest.param("return [0.123456789] * 900_000", id="numbers", marks=pytest.mark.slow),
        pytest.param("import numpy\n    return numpy.ones(10**6)", id="array"),
        pytest.param(
            "for _ in range(9_000):\n        try: run(10**3_000)\n        except Exception: pass",
            id="questions",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_answers_that_are_too_large_cost_their_exercise_and_say_so(kept, body):
    result, size = kept(answering(body))
    verdict = only(result, SEARCH)
    assert verdict is not None
    assert "all answers of a notebook may take 3 MiB together" in verdict.message
    assert size < ANSWER_BYTES + 10**6


def test_answers_that_fit_are_kept(kept):
    result, size = kept(answering("return [0.123456789] * 7_000"))
    assert only(result, SEARCH)
    assert size > 10**5


@pytest.mark.parametrize("levels", [*range(58, 67), 500])
def test_no_depth_of_an_answer_breaks_the_grader(kept, levels):
    body = f"value = 1\n    for _ in range({levels}): value = [value]\n    return value"
    result, _ = kept(answering(body))
    assert only(result, SEARCH), "wrong, and not failed"


FLOODS = {
    "pictures": "b = base64.b64encode(b'\\x89PNG\\r\\n\\x1a\\n' + os.urandom(300_000)).decode()\n"
    "for _ in range(2): display({'image/png': b}, raw=True)",
    "markup": "for _ in range(30): display(HTML('&amp;' * 20_000))",
    "text": "for _ in range(150): display({'text/plain': '&' * 6_000}, raw=True)",
}


@pytest.mark.parametrize(
    "flood",
    [pytest.param(f, marks=[pytest.mark.slow] * (f != "pictures")) for f in FLOODS],
)
def test_outputs_that_are_too_large_are_left_out_and_cost_nothing(kept, flood):
    notebook = solved(LAB05)
    source = f"import base64, os\nfrom IPython.display import HTML, display\n{FLOODS[flood]}"
    notebook["cells"] += [code_cell(source) | {"id": f"flood-{n}"} for n in range(6)]
    result, size = kept(notebook)
    assert {v.status for v in result.verdicts} == {"right"}
    outputs = [cell.get("outputs", []) for cell in result.notebook["cells"]]
    assert sum(len(json.dumps(one)) for one in outputs) < OUTPUT_BYTES + 10**4
    assert "the outputs of a notebook may take at most 1 MiB together" in json.dumps(outputs)
    assert size < OUTPUT_BYTES + 10**6
    assert len(feedback_html(result)) < 2 * 10**6
