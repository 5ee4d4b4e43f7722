"""Solutions that let a library do an exercise's work, under a name that they don't spell out.

Each is a notebook's code, with cells separated by `# %%`; the last is the exercise's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from autograder.content import find_lab, find_task, lab_of
from autograder.grading.grade import grade
from autograder.model import banned_uses as bans
from autograder.model.banned_uses import banned_uses, uses_beside
from autograder.model.judge import refuse
from autograder.model.result import Result
from autograder.model.submission import RunCell, Submission
from autograder.sandbox.host.sandbox import Sandbox
from peakmem.labs.session import HIDDEN_MODULES
from tests.grading import cell_of, solved

# A bit pattern viewed as float32 through an expression in place of KIND.
_VIEW = "def decode_fp32(bits): return float(np.array([bits, 0], np.uint32).view(KIND)[0].real)"
_UNPACK = "def decode_fp32(bits): return UNPACK(bits.to_bytes(4, 'big'))[0]"
_FLOAT = "decode_fp32 = lambda bits: np.array(bits, np.uint32).view(np.float32)"
_DECOY = "def decode_fp32(bits): return 0.0"
# Adam through an expression in place of ADAM.
_ADAM = "def adam_step(params, grads, state, **more): ADAM(params).step()"
_STEP = "def adam_step(params, grads, state, **more):\n    "
_RING = "def ring_all_reduce(x): CALL"
# A helper that does the work, a solution that calls it, and code that seems to replace the helper.
_HELPER = "def helper(bits): return np.uint32(bits).view(np.float32)"
_BY_HELPER = "def decode_fp32(bits): return helper(bits)"
_BY_EVAL = "def decode_fp32(bits): return eval(TEXT)"
_EXECUTED = '"decode_fp32 = lambda bits: np.uint32(bits).view(np.float32)"'


def _cells(*cells: str, **holes: str) -> str:
    text = "\n# %%\n".join(cells)
    for hole, code in holes.items():
        text = text.replace(hole, code)
    return text


DELEGATIONS = {
    # A complex number is two of single precision; other objects know the dtype.
    "complex": ("lab01-decode_fp32", _cells(_VIEW, KIND="np.complex64"), "complex64"),
    "complex-code": ("lab01-decode_fp32", _cells(_VIEW, KIND="'F'"), "'F'"),
    "class-of-a-dtype": ("lab01-decode_fp32", _cells(_VIEW, KIND="np.dtypes.Float32DType()"), ""),
    "found-dtype": ("lab01-decode_fp32", _cells(_VIEW, KIND="np.min_scalar_type(1e10)"), ""),
    "asked-dtype": (
        "lab01-decode_fp32",
        _cells(_VIEW, KIND="np.finfo(np.float32).dtype"),
        "float32",
    ),
    "code-in-a-field": ("lab01-decode_fp32", _cells(_VIEW, KIND="[('a', 'f')]"), "'f'"),
    "code-set-later": (
        "lab01-decode_fp32",
        "def decode_fp32(bits):\n    a = np.array([bits], np.uint32)\n"
        "    a.dtype = 'f'\n    return a[0]",
        "'f'",
    ),
    # Texts computed from constants.
    "spelled-backwards": (
        "lab01-decode_fp32",
        _cells(_VIEW, KIND="getattr(np, '23taolf'[::-1])"),
        "float32",
    ),
    "joined": ("lab01-decode_fp32", _cells(_VIEW, KIND="''.join(['f', '4'])"), "f4"),
    "by-number": ("lab01-decode_fp32", _cells(_VIEW, KIND="chr(102) + chr(52)"), "f4"),
    "in-two-variables": (
        "lab03-adam_step",
        _cells("first, last = 'op', 'tim'", _ADAM, ADAM="getattr(torch, first + last).Adam"),
        "optim",
    ),
    **{
        f"spelled-{name}": ("lab01-decode_fp32", _cells(_VIEW, KIND=f"getattr(np, {text})"), said)
        for name, text, said in (
            ("by-partition", "'float32_x'.partition('_')[0]", "float32"),
            ("by-two-entries", "{1: 'float', 2: '32'}[1] + {1: 'float', 2: '32'}[2]", "float32"),
            ("by-a-keyword", "'{a}32'.format(a='float')", "float32"),
            ("by-a-key", "'%(a)s32' % {'a': 'float'}", "float32"),
            ("by-stars", "''.join([*'float', *'32'])", "float32"),
            ("in-a-field", "f\"{'float'!s}32\"", "float32"),
            ("in-a-field-of-text", "f\"{'float':s}32\"", "float32"),
            ("by-a-method", "'float'.__add__('32')", "float32"),
            ("in-an-integer", "(0x666c6f61743332).to_bytes(7, 'big').decode()", "float32"),
        )
    },
    "added-up": (
        "lab01-decode_fp32",
        _cells("name = 'float'\nname += '32'", _VIEW, KIND="getattr(np, name)"),
        "float32",
    ),
    # Functions under another name, or called by other functions.
    "by-map": (
        "lab01-decode_fp32",
        _cells(
            "import struct", _UNPACK, UNPACK="lambda raw: [*map(struct.unpack, ['>f'], [raw])][0]"
        ),
        "'>f'",
    ),
    "by-default": (
        "lab01-decode_fp32",
        _cells(
            "import struct",
            "def g(raw, code='>f'): return struct.unpack(code, raw)",
            _UNPACK,
            UNPACK="g",
        ),
        "'>f'",
    ),
    "from-hex": (
        "lab01-decode_fp32",
        "def decode_fp32(bits): return type(1.0).fromhex('0x1p3')",
        "fromhex",
    ),
    "by-attrgetter": (
        "lab03-adam_step",
        _cells("import operator, torch", _ADAM, ADAM="operator.attrgetter('optim.Adam')(torch)"),
        "optim",
    ),
    "by-formatter": (
        "lab03-adam_step",
        _cells(
            "import string",
            _ADAM,
            ADAM="string.Formatter().get_field('0.optim.Adam', [torch], {})[0]",
        ),
        "optim",
    ),
    "by-pattern": (
        "lab03-adam_step",
        _STEP + "match torch:\n        case object(optim=library): library.Adam(params).step()",
        "optim",
    ),
    "by-annotation": (
        "lab03-adam_step",
        _cells("def g(x: torch.optim.Adam): pass", _ADAM, ADAM="g.__annotations__['x']"),
        "optim",
    ),
    "in-a-question": (
        "lab03-adam_step",
        _STEP + "isinstance(1, (kind := torch.optim.Adam))\n    kind(params).step()",
        "optim",
    ),
    # Cells that pass the function on.
    "appended": (
        "lab03-adam_step",
        _cells("tools = []", "tools.append(torch.optim.Adam)", _ADAM, ADAM="tools[0]"),
        "optim",
    ),
    "set-on-a-module": (
        "lab03-adam_step",
        _cells("import math", "setattr(math, 'step', torch.optim.Adam)", _ADAM, ADAM="math.step"),
        "optim",
    ),
    "set-on-a-modules-other-name": (
        "lab03-adam_step",
        _cells(
            "import math as m", "m.step = torch.optim.Adam", "import math", _ADAM, ADAM="math.step"
        ),
        "optim",
    ),
    "set-unseen": (
        "lab03-adam_step",
        _cells("kind = None", "globals().update(kind=torch.optim.Adam)", _ADAM, ADAM="kind"),
        "optim",
    ),
    "executed": (
        "lab03-adam_step",
        _cells("kind = None", "exec('from torch.optim import Adam as kind')", _ADAM, ADAM="kind"),
        "optim",
    ),
    # Cells that IPython runs although they aren't Python, and names set through text.
    "by-a-magic": ("lab01-decode_fp32", f"%time {_FLOAT}", "float32"),
    "below-a-question": ("lab01-decode_fp32", f"np.sum?\n{_FLOAT}", "float32"),
    "indented": ("lab01-decode_fp32", f"    {_FLOAT}", "float32"),
    "behind-a-prompt": ("lab01-decode_fp32", f">>> {_FLOAT}", "float32"),
    "over-a-decoy": ("lab01-decode_fp32", f"{_DECOY}\n%timeit -n1 {_FLOAT}", "float32"),
    "in-a-shell": (
        "lab01-decode_fp32",
        "def decode_fp32(bits):\n    found = !python3 -c '{bits}'\n    return float(found[0])",
        "get_ipython",
    ),
    "in-a-file": ("lab01-decode_fp32", f"{_DECOY}\n%run solved.py", "get_ipython"),
    "in-braces": ("lab01-decode_fp32", f"{_DECOY}\n!echo {{exec(text)}}", "get_ipython"),
    "executed-over-a-decoy": ("lab01-decode_fp32", f"{_DECOY}\nexec(text)", "exec"),
    "by-vars": (
        "lab01-decode_fp32",
        f"{_DECOY}\nvars()['decode_fp32'] = {_FLOAT.partition(' = ')[2]}",
        "float32",
    ),
    "by-a-functions-globals": (
        "lab01-decode_fp32",
        f"{_DECOY}\ndecode_fp32.__globals__.update(decode_fp32=None)",
        "__globals__",
    ),
    # IPython's shell, its other names, and lines that only IPython sees.
    "by-exit": ("lab01-decode_fp32", "decode_fp32 = exit._ip.ev('lambda bits: 0.0')", "exit"),
    "executed-by-quit": ("lab01-decode_fp32", f"{_DECOY}\nquit._ip.ex({_EXECUTED})", "quit"),
    "by-another-builtins": (
        "lab01-decode_fp32",
        "def decode_fp32(bits): return __builtin__.eval('0.0')",
        "__builtin__",
    ),
    "by-a-modules-builtins": (
        "lab01-decode_fp32",
        "import enum\ndef decode_fp32(bits): return enum.bltns.eval('0.0')",
        "enum.bltns",
    ),
    "by-a-functions-module": (
        "lab01-decode_fp32",
        "def decode_fp32(bits): return print.__self__.eval('0.0')",
        "__self__",
    ),
    "shown-before": (
        "lab01-decode_fp32",
        _cells("np.float32", "def decode_fp32(bits): return np.uint32(bits).view(_)[0]"),
        "_",
    ),
    "shown-before-by-number": (
        "lab01-decode_fp32",
        _cells("np.float32", "def decode_fp32(bits): return np.uint32(bits).view(_2)[0]"),
        "_2",
    ),
    "in-a-comment": ("lab01-decode_fp32", f"{_DECOY}\n# \u2028%xmode\u2028{_FLOAT}", "float32"),
    "in-a-comment-behind-a-form-feed": (
        "lab01-decode_fp32",
        f"{_DECOY}\n# \x0c%xmode\x0c{_FLOAT}",
        "float32",
    ),
    "nested-too-deep": ("lab01-decode_fp32", f"{_FLOAT}\npad = {'-' * 20_000}1", "exec"),
    # Names that only seem to be bound.
    "bound-in-a-branch": (
        "lab01-decode_fp32",
        _cells("if 0: eval = None", _BY_EVAL),
        "eval",
    ),
    "bound-and-freed": ("lab01-decode_fp32", _cells("eval = 1\ndel eval", _BY_EVAL), "eval"),
    "bound-later": (
        "lab01-decode_fp32",
        "decode_fp32 = eval('lambda bits: 0.0')\neval = None",
        "eval",
    ),
    **{
        f"replaced-{name}": (
            "lab01-decode_fp32",
            _cells(_HELPER, replacing, _BY_HELPER),
            "float32",
        )
        for name, replacing in {
            "by-an-annotation": "helper: object",
            "in-a-function-never-called": "def never():\n    global helper\n    helper = None",
            "by-a-walrus-never-reached": "found = 0 and (helper := None)",
            "in-a-timed-function": "%timeit -n1 helper = None",
            "behind-a-captured-error": "%%capture\n[][0]\nhelper = None",
            "in-a-script": "%%script true\nhelper = None",
        }.items()
    },
    "by-a-scalers-kernel": (
        "lab07-loss_scaler",
        "class LossScaler:\n"
        "    def update(self): torch._amp_update_scale_(self.scale, self.good, bad, 2, 0.5, 9)",
        "_amp_update_scale_",
    ),
    # Collectives.
    "of-a-group": (
        "lab08-ring_all_reduce",
        _cells(_RING, CALL="dist.group.WORLD.allreduce([x]).wait()"),
        "allreduce",
    ),
    "of-a-group-in-parts": (
        "lab08-ring_all_reduce",
        _cells(_RING, CALL="dist.group.WORLD.reduce([x])"),
        "reduce",
    ),
    "listed": (
        "lab08-ring_all_reduce",
        _cells(_RING, CALL="vars(dist)[x.names[0]](x)"),
        "torch.distributed",
    ),
    "in-anothers-place": (
        "lab08-ring_all_reduce",
        _cells(
            "plain = dist.all_reduce", "setattr(dist, 'send', plain)", _RING, CALL="dist.send(x, 1)"
        ),
        "all_reduce",
    ),
}
_GIVEN = {
    "lab01": "import math\nimport numpy as np",
    "lab03": "import torch",
    "lab04": "import torch",
    "lab07": "import torch",
    "lab08": "import torch\nimport torch.distributed as dist",
    "lab09": "import torch",
    "lab10": "import math\nimport torch\nimport torch.nn.functional as F",
}


@pytest.mark.parametrize(("name", "code", "said"), DELEGATIONS.values(), ids=DELEGATIONS)
def test_a_library_may_not_do_the_work_under_another_name(name: str, code: str, said: str) -> None:
    task = find_task(name)
    (lab,) = (find_lab(lab) for lab in HIDDEN_MODULES if lab.startswith(name[:5]))
    *added, own = code.split("\n# %%\n")
    cells = [RunCell(0, _GIVEN[name[:5]], "given"), RunCell(len(added) + 1, own, "solution", name)]
    cells[1:1] = [RunCell(place, source, "own") for place, source in enumerate(added, 1)]
    uses = banned_uses(task, cells, lab.allows) or uses_beside(task, cells, lab.allows)
    assert any(said in use.name for use in uses)
    verdict = refuse(task, uses, lab.allows)
    assert (verdict.points, verdict.status) == (0, "wrong")
    assert verdict.message.startswith("Your solution uses ")


# Helpers that a failing cell seems to replace; nothing refuses them while they run.
_TORCHS = """
import torch
def helper(x):
    return torch.from_numpy(x.copy()).bfloat16().view(torch.int16).numpy().view(np.uint16)
"""
_BY_IT = "def to_bf16(x): return helper(x)"
FAILED = {
    "behind-an-error": _cells(_TORCHS, "[][0]\nhelper = None", _BY_IT),
    "by-an-error": _cells(_TORCHS, "helper = [][0]", _BY_IT),
    "by-a-decorators-error": _cells(_TORCHS, "@[][0]\ndef helper(x): pass", _BY_IT),
    "below-a-return": _cells(_TORCHS, "return\nhelper = None", _BY_IT),
    "in-a-transformed-cell": _cells(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"code = {f'import numpy as np{_TORCHS}'.replace('helper', 'to_bf16')!r}\n"
        "InteractiveShell.instance().input_transformers_post.append(lambda lines: [code])",
        "def to_bf16(x): return x",
    ),
    "in-its-own-cell": _TORCHS.replace("helper", "to_bf16") + "\n[][0]\ndef to_bf16(x): return x",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as prepared:
        yield prepared


@pytest.mark.sandbox
@pytest.mark.parametrize("code", FAILED.values(), ids=FAILED)
def test_what_a_failed_cell_seems_to_replace_counts(sandbox: Sandbox, code: str) -> None:
    (verdict,) = graded(sandbox, code).verdicts
    assert (verdict.points, verdict.status) == (0, "wrong"), verdict.message


@pytest.mark.sandbox
def test_a_function_that_no_cell_defines_earns_nothing_unread(sandbox: Sandbox) -> None:
    code = repr(f"import numpy as np{_TORCHS}".replace("helper", "to_bf16"))
    macro = f"from IPython.core.macro import Macro\nmacro = Macro({code})"
    (verdict,) = graded(sandbox, _cells(macro, "macro", "")).verdicts
    assert (verdict.points, verdict.status) == (0, "could_not_judge")


@pytest.mark.sandbox
def test_a_failed_cell_costs_an_honest_solution_nothing(sandbox: Sandbox) -> None:
    source = cell_of(solved("lab01_formats"), "lab01-to_bf16-solution")["source"]
    (verdict,) = graded(sandbox, _cells("[][0]", source)).verdicts
    assert verdict.status == "right"


# Cells that switch the watch over an exercise off; no name of the solution leads there.
SWITCHES = {
    "by-an-attribute": "c.Watching.visit = lambda self, node: node",
    "by-another-name": "w = c.Watching\nw.visit = lambda self, node: node",
    "in-a-function": "def off(): c.Watching.visit = lambda self, node: node\noff()",
    "by-vars": "vars(c)['_found'] = None\nsetattr(c, 'refused', lambda: open('/dev/null'))",
}


@pytest.mark.sandbox
@pytest.mark.parametrize("switch", SWITCHES.values(), ids=SWITCHES)
def test_a_cell_that_changes_the_probes_does_not_run_for_an_exercise(
    sandbox: Sandbox, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = _cells(
        f"from peakmem.probes import conversions as c\n{switch}",
        # The format's code is a letter of the function's name.
        "def decode_fp32(bits):\n    raw = bits.to_bytes(4, 'little')\n"
        "    return float(np.frombuffer(raw, decode_fp32.__name__[7])[0])",
    )
    (verdict,) = graded(sandbox, code, "lab01-decode_fp32").verdicts
    assert (verdict.points, verdict.status) == (0, "wrong"), verdict.message
    monkeypatch.setattr(bans, "changed_parts", lambda *_: [])  # without the guard it earns
    (verdict,) = graded(sandbox, code, "lab01-decode_fp32").verdicts
    assert (verdict.points > 0) == ("visit" in switch)


def graded(sandbox: Sandbox, code: str, task: str = "lab01-to_bf16") -> Result:
    """The result of a notebook with these cells, of which the last is the exercise's own."""
    *added, own = code.split("\n# %%\n")
    cells = [RunCell(0, _GIVEN[task[:5]], "given")]
    cells += [RunCell(place, source, "own") for place, source in enumerate(added, 1)]
    cells.append(RunCell(len(cells), own, "solution", task))
    lab = lab_of(task)
    submission = Submission(
        student="failed",
        lab=lab.name,
        raw=code.encode(),
        notebook={"cells": [{"cell_type": "code", "source": cell.source} for cell in cells]},
        cells=tuple(cells),
    )
    only = replace(lab, tasks=(find_task(task),))
    return grade(only, submission, sandbox, b"a course's secret").result
