"""Changes of the course's own library, which may come from any cell."""

from __future__ import annotations

import ast

import pytest

from autograder.base.course import COURSE
from autograder.content import find_lab, lab_names
from autograder.model.allowed import ENTRIES
from autograder.model.module_names import Aliases, add_imports
from autograder.model.tampering import changed_parts
from autograder.trials.answer_bank import read_bank
from tests.grading import released, solved


@pytest.mark.parametrize(
    "source",
    [
        "from peakmem.probes import conversions as c\nc.Watching.visit = print",
        "import peakmem\npeakmem.probes.lab05.run = 1",
        "import peakmem.measure.meter as m\nw = m.MemoryMeter\nw.peak_bytes = 0",
        "from peakmem.measure import meter\nsetattr(meter, 'x', 1)",
        "import peakmem.probes as p\nvars(p)['x'] = 1",
        "import peakmem.probes.lab05 as p\np.x += 1",
        "import peakmem\ndel peakmem.probes.x",
        "def f():\n    from peakmem.probes import lab05\n    lab05.x = 1",
    ],
)
def test_a_change_of_a_probe_or_of_the_meter_is_found(source: str) -> None:
    assert changed_parts([source], {}, ENTRIES) in (["peakmem.probes"], ["peakmem.measure"])


@pytest.mark.parametrize(
    "source",
    [
        "import peakmem.units as u\nu.x = 1",
        "import matplotlib.pyplot as plt\nplt.rcParams['a'] = 1",
        "from peakmem.meter import MemoryMeter\nm = MemoryMeter('cpu')\nm.mine = 1",
        "from peakmem.probes import lab05\nresults = {}\nresults[lab05.x] = lab05.y",
    ],
)
def test_what_is_allowed_and_what_is_only_read_is_not(source: str) -> None:
    assert changed_parts([source], {}, ENTRIES) == []


GIVEN = {"whole": {"peakmem.labs.whole"}, "lab05": {"peakmem.probes.lab05"}}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("lab05.x = 1", ["peakmem.probes"]),
        ("def f():\n    lab05.x = 1", ["peakmem.probes"]),
        ("def f():\n    here = lab05\n    here.x = 1", ["peakmem.probes"]),
        ("lab05.x = 1\nlab05 = {}", ["peakmem.probes"]),
        ("def f(whole):\n    whole[0] = 1", []),
        ("def f(n):\n    whole = [n]\n    whole[0] = 1", []),
        ("lab05 = {}\nlab05['x'] = 1", []),
        ("lab05 = {}\nfrom peakmem.probes import lab05\nlab05.x = 1", ["peakmem.probes"]),
    ],
)
def test_a_variable_is_not_the_librarys_because_its_name_is(source: str, found: list[str]) -> None:
    assert changed_parts([source], GIVEN, ENTRIES) == found


@pytest.mark.parametrize("lab", lab_names())
def test_no_correct_answer_changes_it(lab: str) -> None:
    given: Aliases = {}
    for cell in released(lab)["cells"]:
        if cell["cell_type"] == "code":
            add_imports(given, ast.walk(ast.parse(cell["source"])))
    right = [entry for entry in read_bank(COURSE.bank, find_lab(lab)) if entry.kind == "right"]
    found = {entry.label: changed_parts([entry.source], given, ENTRIES) for entry in right}
    assert given
    assert {label: parts for label, parts in found.items() if parts} == {}


@pytest.mark.parametrize("lab", lab_names())
def test_no_lab_changes_it(lab: str) -> None:
    sources = [c["source"] for c in solved(lab)["cells"] if c["cell_type"] == "code"]
    assert changed_parts(sources, {}, ENTRIES) == []
