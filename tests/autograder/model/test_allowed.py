"""Names that no solution may use, names that all may, and name collisions in a notebook."""

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import pytest

from autograder.content import find_lab, find_task, lab_names
from autograder.model.allowed import ENTRIES, refused_part
from autograder.model.banned_uses import banned_uses, uses_beside
from autograder.model.restrictions import Ban
from autograder.model.submission import RunCell
from autograder.model.task import Task
from autograder.notebooks.intake import take_in
from tests.answers import answer, answers
from tests.autograder.uses import names_used_by
from tests.grading import cell_of, released, solved

TASK = Task("lab01-f", {"part": 1}, ("f",), "f", lambda _: [], lambda *_: {})


def uses(body: str, *others: str, task: Task = TASK) -> list[str]:
    indented = body.replace("\n", "\n    ")
    return names_used_by(task, *others, f"def f(x):\n    {indented}")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("import os\nreturn os.getcwd()", "os"),
        ("import os.path as p\nreturn p.join(x)", "os"),
        ("from ctypes import c_float", "ctypes"),
        ("import multiprocessing.sharedctypes as s", "multiprocessing"),
        ("import helper_of_mine", "helper_of_mine"),
        ("from . import helper", ".helper"),
        ("import sys\nreturn sys.modules['torch']", "sys.modules"),
        ("import gc\nreturn gc.get_objects()", "gc.get_objects"),
        ("import torch\nreturn torch.load(x)", "torch.load"),
        ("from torch.multiprocessing import Pool", "torch.multiprocessing"),
        ("import torch\nt = torch\nreturn t.load(x)", "torch.load"),
        ("import torch\nreturn getattr(torch, 'lo' + 'ad')(x)", "torch.load"),
        ("import random\nreturn random._os.getcwd()", "random._os"),
        ("import torch\nreturn torch.sys.modules", "torch.sys"),
        ("import math\nreturn math.__dict__", "math.__dict__"),
        ("import numpy as np\nreturn np.ones(3).ctypes.data", "ctypes"),
        ("import torch\nreturn torch.nn.a.b.c.d.e.g.h.i.j.k.l.m.__loader__.o", "__loader__"),
        ("return f.__globals__['x']", "__globals__"),
        ("return getattr(f, '__code__')", "__code__"),
        ("return eval(x)", "eval"),
        ("return exec(''.join(x))", "exec"),
        ("return open(x)", "open"),
        ("return globals()[x]", "globals"),
        ("return __import__('torch')", "__import__"),
        ("return get_ipython().user_ns", "get_ipython"),
        ("import peakmem\nreturn peakmem.labs.session.lab", "peakmem.labs"),
        ("from peakmem.numbers import formats", "peakmem.numbers"),
        ("import math\nmath.os = x", "math.os"),
    ],
)
def test_what_no_solution_may_use(body: str, found: str) -> None:
    assert found in uses(body)


@pytest.mark.parametrize(
    "body",
    [
        "import abc, bisect, copy, decimal, enum, fractions, heapq, operator, random, re, string\n"
        "return bisect.bisect(x), copy.copy(x), decimal.Decimal(x), heapq.heapify(x), re.sub(x)",
        "import torch.nn.functional as F, torch.utils.checkpoint\nreturn F.relu(x)",
        "from torch.utils.checkpoint import checkpoint\nreturn checkpoint(x)",
        "import numpy as np\nreturn np.array(x).trace() + np.select(x) + np.random.rand()",
        "import torch\nreturn torch.chunk(x) + torch.trace(x) + torch.signal.windows.hann(3)",
        "import sys\nreturn sys.float_info.max + sys.maxsize",
        "import collections.abc as c, typing, time, warnings, statistics\nreturn time.time()",
        "from peakmem import OutOfMemory\nfrom peakmem.errors import Infeasible\nraise Infeasible",
        "import matplotlib.pyplot as plt\nplt.plot(x)",
        "def g(input, open=1, compile=2):\n    return input + open + compile\nreturn g(x)",
        "eval = x\nreturn eval",
        "return getattr(x, 'grad') or getattr(x, x.name)",
        "return x.eval() + x.compile() + x.open + x.exec",
        "print(x, type(x), vars(x), dir(x), id(x), super)",
    ],
)
def test_what_every_solution_may_use(body: str) -> None:
    assert uses(body) == []


def test_only_what_the_solution_reaches_costs_anything() -> None:
    assert uses("return x", "import os, sys, ctypes\nprint(os.getcwd())") == []
    assert uses("return x", "import os\nimport matplotlib.pyplot as plt\ndef g(): os.abort()") == []
    assert uses("return g(x)", "import os\ndef g(x): return os.getcwd()") == ["os"]
    assert uses("return g(x)", "import os\nfrom math import sqrt as g") == []
    assert uses("return x", "from ctypes import *") == []


def test_in_a_loops_body_its_names_are_bound() -> None:
    filled = "TABLE = []\nfor {0} in range(256):\n    TABLE.append({0})"
    assert uses("return TABLE[x]", filled.format("_")) == []
    assert uses("return TABLE[x]", filled.format("input")) == []
    emptied = f"{filled.format('eval')}\nfor eval in []: pass\nelse: TABLE[0] = eval"
    assert uses("return TABLE[x]", emptied) == ["eval"]
    freed = "TABLE = []\nfor eval in [1]:\n    del eval\n    TABLE.append(eval)"
    assert uses("return TABLE[x]", freed) == ["eval"]
    assert uses("return eval(x)", "for eval in []: pass") == ["eval"]


def test_a_name_that_nothing_seems_to_bind_may_come_from_what_binds_unseen() -> None:
    assert uses("return g(x)", "exec('g = 1')") == ["exec"]
    assert uses("return g(x)", "from ctypes import *") == ["ctypes"]
    assert uses("return sqrt(x)", "from math import *") == []
    assert uses("return abs(x)", "exec('g = 1')") == []


def test_an_annotation_is_no_use() -> None:
    source = "from pathlib import Path\nimport os\ndef f(x: Path) -> os.stat_result: return x"
    assert names_used_by(TASK, source) == []


def test_a_lab_and_a_task_widen_and_narrow_the_list() -> None:
    source = "import threading, math\ndef f(x): return threading.Lock(), math.fsum(x)"
    assert names_used_by(TASK, source) == ["threading"]
    assert names_used_by(TASK, source, allows=["threading"]) == []
    wider = replace(TASK, ban=Ban(allows=frozenset({"threading"})))
    assert names_used_by(wider, source) == []
    narrower = replace(wider, ban=replace(wider.ban, modules=frozenset({"math.fsum"})))
    assert names_used_by(narrower, source) == ["math.fsum"]
    no_sum = replace(TASK, ban=Ban(modules=frozenset({"builtins.sum"})))
    assert uses("return sum(x)", task=no_sum) == ["sum"]
    assert uses("sum = 0\nreturn sum", task=no_sum) == []


# Cells that meet


def used(*rows: tuple[str, str]) -> list[str]:
    """The names that exercise `f` uses in cells of these kinds; `g` is another exercise's."""
    task = replace(TASK, ban=Ban(modules=frozenset({"torch.utils.checkpoint"})))
    kinds = dict.fromkeys("fg", "solution")
    cells = [
        RunCell(i, source, kinds.get(kind, kind), f"lab01-{kind}" if kind in kinds else None)  # type: ignore[arg-type]
        for i, (kind, source) in enumerate(rows)
    ]
    return [use.name for use in [*banned_uses(task, cells), *uses_beside(task, cells)]]


CHECKPOINT = "from torch.utils.checkpoint import checkpoint"
CALLS = "def f(x): return checkpoint(x)"
OWN = "def checkpoint(x): return x"


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        pytest.param([("f", f"{OWN}\n{CALLS}"), ("g", CHECKPOINT)], 0, id="another's later cell"),
        pytest.param([("g", CHECKPOINT), ("f", f"{OWN}\n{CALLS}")], 0, id="its own cell binds it"),
        pytest.param([("g", CHECKPOINT), ("f", CALLS)], 1, id="another's earlier cell"),
        pytest.param([("f", CALLS), ("own", OWN), ("g", CHECKPOINT)], 0, id="a helper below"),
        pytest.param([("f", CALLS), ("g", CHECKPOINT), ("own", OWN)], 0, id="added ones first"),
        pytest.param([("f", CALLS), ("own", CHECKPOINT)], 1, id="a forbidden helper below"),
        pytest.param([("f", CALLS), ("g", CHECKPOINT)], 1, id="only another's, below"),
        pytest.param(
            [("own", OWN), ("f", CALLS), ("own", CHECKPOINT)], 0, id="a later added cell is not it"
        ),
        pytest.param(
            [("f", f"{OWN}\n{CALLS}"), ("own", CHECKPOINT), ("own", "f = f")], 1, id="but if f is"
        ),
        pytest.param([("g", "import torch.utils.checkpoint"), ("f", CALLS)], 0, id="only a root"),
        pytest.param([("given", CHECKPOINT), ("f", CALLS)], 1, id="a given import is a use too"),
        pytest.param([("given", f"{CHECKPOINT}\nh = 1"), ("f", "def f(): h")], 0, id="given"),
    ],
)
def test_cells_that_meet(rows: list[tuple[str, str]], found: int) -> None:
    assert len(used(*rows)) == found


def test_what_runs_at_once_finds_the_names_of_its_time() -> None:
    made = f"{CHECKPOINT}\ndef make(): return checkpoint\nmade = make()"
    assert used(("own", made), ("own", "checkpoint = None"), ("f", "def f(x): return made(x)"))
    default = "def f(x, run=checkpoint): return run(x)"
    assert used(("own", CHECKPOINT), ("f", default), ("own", "checkpoint = None"))
    called_later = f"{OWN}\nmade = lambda x: checkpoint(x)"
    rows = [("own", called_later), ("own", CHECKPOINT), ("f", "def f(x): return made(x)")]
    assert used(*rows)


def test_right_answers_that_meet_in_one_notebook_are_not_refused() -> None:
    name = "lab04_checkpointing"
    lab, release = find_lab(name), released(name)
    torchs = answer(name, "lab04-recompute_attention/right_torchs_checkpoint").source
    notebook = solved(name)
    cell_of(notebook, "lab04-recompute_attention-solution")["source"] = torchs
    cells = take_in("ada", name, json.dumps(notebook).encode(), release).cells
    assert "import checkpoint" in torchs
    assert [use for task in lab.tasks for use in banned_uses(task, cells, lab.allows)] == []
    first = [cell for cell in cells if cell.task == "lab04-recompute_attention"]
    moved = [*first, *(cell for cell in cells if cell not in first)]
    moved = [replace(cell, index=place) for place, cell in enumerate(moved)]
    assert [use for task in lab.tasks for use in banned_uses(task, moved, lab.allows)] == []


# The course


@pytest.mark.parametrize("name", lab_names())
def test_no_right_answer_of_the_bank_is_refused(name: str) -> None:
    lab = find_lab(name)
    refused = {
        entry.label: found
        for task in lab.tasks
        for entry in answers(name)
        if entry.kind == "right" and entry.task == task.id
        if (found := names_used_by(task, entry.source, allows=lab.allows))
    }
    assert refused == {}


def test_public_names_of_the_allowed_libraries_are_allowed() -> None:
    assert not [name for name in _public_names() if refused_part(name, ENTRIES)]


def _public_names() -> Iterator[str]:
    """The functions and classes of modules that solutions use most, by their dotted names."""
    names = ["numpy", "numpy.linalg", "numpy.random", "torch", "torch.nn", "torch.autograd"]
    names += ["torch.nn.functional", "torch.cuda", "torch.linalg", "torch.func", "math", "re"]
    names += ["itertools", "functools", "collections", "operator", "contextlib", "statistics"]
    taken_out = {name for name, allowed in ENTRIES.items() if not allowed}
    for name in names:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, public, None)
            foreign = isinstance(value, ModuleType) and value.__name__ in sys.stdlib_module_names
            if not public.startswith("_") and not foreign and f"{name}.{public}" not in taken_out:
                yield f"{name}.{public}"


@pytest.mark.parametrize(
    ("task", "body"),
    [
        ("lab01-careful_sum", "import math\nreturn math.fsum(x)"),
        ("lab01-careful_sum", "import statistics\nreturn statistics.fmean(x) * len(x)"),
        ("lab01-careful_sum", "from fractions import Fraction\nreturn Fraction(0)"),
        ("lab01-careful_sum", "return sum(map(float, x))"),
        ("lab01-careful_sum", "return x.astype('float64').sum()"),
        ("lab01-decode_fp32", "import plistlib\nreturn plistlib.loads(x)"),
        ("lab01-decode_fp32", "from multiprocessing.sharedctypes import RawValue"),
        ("lab02-predict_training", "from peakmem.meter import MemoryMeter"),
        ("lab02-predict_training", "from peakmem.nn import GPT, training_step"),
        ("lab02-predict_training", "x.register_forward_hook(print)"),
        ("lab02-predict_training", "import torch\nreturn torch.func.grad(x)"),
        ("lab07-train", "import torch\ntorch.set_autocast_enabled('cpu', True)"),
        ("lab07-loss_scaler", "import torch\ntorch.set_autocast_cpu_dtype(x)"),
        ("lab10-tiled_attention", "import torch\nreturn torch.onnx.ops.attention(x, x, x)"),
        ("lab10-tiled_attention", "import torch\nreturn torch._decomp.decomposition_table[x]"),
        (
            "lab04-checkpoint",
            "import torch\nreturn torch.ops.higher_order.tag_activation_checkpoint",
        ),
        # Code from text that no constant spells.
        (
            "lab03-adam_step",
            "import typing\nreturn typing.List[x].__args__[0]._evaluate({}, {}, ())",
        ),
        ("lab03-adam_step", "import typing\nreturn typing._eval_type(typing.List[x], {}, {})"),
        ("lab03-adam_step", "import torch\nreturn torch.overrides.get_overridable_functions()[x]"),
        ("lab03-adam_step", "import torch\nreturn torch.utils.collect_env.run(x)"),
    ],
)
def test_the_ways_around_an_exercise_are_refused(task: str, body: str) -> None:
    found = find_task(task)
    source = f"def {found.defines[0]}(x, *more):\n    " + body.replace("\n", "\n    ")
    assert names_used_by(found, source, allows=["peakmem.nn"])


def test_a_students_method_may_be_called_evaluate() -> None:
    source = """
class Plan:
    def _evaluate(self, x):
        return x

def adam_step(x, *more):
    return Plan()._evaluate(x)
"""
    assert not names_used_by(find_task("lab03-adam_step"), source)


@pytest.mark.parametrize(
    "source",
    [
        "if x: v = w; w = v\n" * 4000 + "def f(x): return v",
        "\n".join(f"def g{i}(x): return g{i + 1}(x)" for i in range(1500))
        + "\nv = g0(v)" * 1500
        + "\ndef f(x): return v",
    ],
    ids=["conditions", "calls"],
)
def test_a_tangle_of_names_is_given_up(source: str) -> None:
    with pytest.raises(RecursionError, match="too many ways"):
        names_used_by(TASK, source)
