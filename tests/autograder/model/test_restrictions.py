"""Uses that the ban has to see, and above all code that it must not count as a use."""

import ast
from collections.abc import Iterator

import pytest

from autograder.model.restrictions import NOTHING_BANNED, Ban
from tests.autograder.uses import names_used

CASTS = Ban(
    names=frozenset({"float32", ".half", "f4"}),
    modules=frozenset({"torch", "torch.optim", "peakmem.numbers.formats"}),
    codes=r"[<>]?\d*f(?!\d+$)",
    coded=frozenset({"struct", "view"}),
    methods=frozenset({"hex", "fromhex"}),
)
LOOPS = Ban(loops=True)


def uses(body: str, *others: str, ban: Ban = CASTS) -> list[str]:
    indented = body.replace("\n", "\n    ")
    return names_used(ban, ["f"], [*others, f"def f(x, half=0):\n    {indented}"])


@pytest.mark.parametrize(
    "body",
    [
        "return np.float32(x)",
        "from numpy import float32 as g\nreturn g(x)",
        "return x.astype('float32')",
        "return x.view('<f4')",
        "return getattr(np, 'float32')(x)",
        "return np.half(x)",
        "return x.astype('half')",
        "import torch\nreturn torch.tensor(x)",
        "from torch.optim import Adam",
        "return __import__('torch')",
        "import importlib\nreturn importlib.import_module('torch.optim')",
        "return peakmem.numbers.formats.decode(x)",
        "return struct.pack('f', x)",
        "return struct.pack('>1f', x)",
        "return struct.pack(b'<f', x)",
        "code = '<f'\nreturn struct.pack(code, x)",
        "return struct.pack('<' + 'f', x)",
        "return struct.pack(f'<{len(x)}f', *x)",
        "return y.view(dtype='f')",
        "return float.hex(x)",
        "return float.fromhex(x)",
        "return np.float64.fromhex(x)",
        "return x.hex()",
        "return abs(x).hex()",
        "return float(y).hex()",
        "return np.float32(x) == x",
        "return float.fromhex(x) + (1.5).hex()",
        "kind = float\nreturn kind.fromhex(x)",
        # Names and codes that constants yield.
        "return getattr(np, 'float' + '32')(x)",
        "return getattr(np, '23taolf'[::-1])(x)",
        "name, size = 'float', 32\nreturn getattr(np, f'{name}{size}')(x)",
        "return getattr(np, 'float%d' % 32)(x)",
        "return getattr(np, '{}32'.format('float'))(x)",
        "return getattr(np, ''.join(['float', '32']))(x)",
        "return getattr(np, ''.join(map(chr, [102, 108, 111, 97, 116, 51, 50])))(x)",
        "return getattr(np, bytes.fromhex('666c6f61743332').decode())(x)",
        "return getattr(np, 'FLOAT32'.lower())(x)",
        "return getattr(np, 'float64'.replace('64', '32'))(x)",
        "return struct.unpack('f' if x else '<f', x)",
        "for code in ('<d', '<f'):\n    struct.unpack(code, x)",
        "unpack = struct.unpack\nreturn unpack('<f', x)",
        "return [*map(struct.unpack, ['<f'], [x])]",
        "return struct.unpack({'code': '<f'}['code'], x)",
        "y = x.view()\ny.dtype = 'f'\nreturn y",
        # Names that are read in other ways.
        "match np:\n        case object(float32=kind): return kind(x)",
        "import numpy\nfrom operator import attrgetter\nreturn attrgetter('float32')(numpy)(x)",
        "import numpy, string\nreturn string.Formatter().get_field('0.float32', [numpy], {})[0]",
        "import numpy\nreturn vars(numpy)[x]",
        "import numpy\nreturn getattr(numpy, dir(numpy)[9])(x)",
        "import numpy\nreturn numpy.__getattribute__(x)",
        "import typing\nreturn typing.get_type_hints(x)",
        "isinstance(x, (kind := np.float32))\nreturn kind(x)",
        "def g(y: np.float32): pass\nreturn g.__annotations__['y'](x)",
        "'float32'\nreturn getattr(np, f.__doc__)(x)",
    ],
)
def test_what_it_sees(body: str) -> None:
    assert uses(body)


@pytest.mark.parametrize(
    "body",
    [
        "half = single = x // 2\nreturn half",
        "return struct.pack('<d', x) + struct.pack('f8', x)",
        "return struct.pack('<d', float('f')), f'{x:f}', {'f': x}['f'], x.split('f')",
        "return {'parts': ['s', 'e', 'f'], 'x': x}",  # nothing here takes codes
        "assert x.dtype == np.float32\nreturn x",
        "assert x.dtype == np.dtype('float32'), 'float32 expected'\nreturn x",
        "assert isinstance(x, np.float32)\nreturn np.issubdtype(x.dtype, np.float32)",
        "return x > np.finfo(np.float32).max",
        "y: np.float32 = x\nreturn y",
        "'float32'\nreturn x.view('float64')",
        "return struct.pack('>d', x).hex() + bytes.fromhex('00').hex() + hex(x)",
        "def g(raw):\n    return raw.decode()\nreturn g(x)",
    ],
)
def test_what_it_lets_pass(body: str) -> None:
    assert uses(body) == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("for i in x: pass", "a Python loop"),
        ("while x: x -= 1", "a Python loop"),
        ("return [i for i in x]", "a Python loop"),
        ("return sum(i for i in x)", "a Python loop"),
        ("return list(map(abs, x))", "map"),
        ("return np.vectorize(abs)(x)", "vectorize"),
    ],
)
def test_loops(body: str, found: str) -> None:
    assert uses(body, ban=LOOPS) == [found]
    assert uses(body) == []


def test_it_follows_helpers_and_constants() -> None:
    assert uses("return g(x)", "def g(x): return h(x)", "h = np.float32") == ["float32"]
    assert uses("return struct.pack(CODE, x)", "CODE = '<f'") == ["'<f'"]
    assert uses("return t.tensor(x)", "import torch as t") == ["torch"]
    assert uses("return g(x)", "def g(x): global h; h = 1", "import torch as h") == []


@pytest.mark.parametrize(
    ("body", "others"),
    [
        ("return tools[0](x)", ["tools = []", "tools.append(np.float32)"]),
        ("return tools[0](x)", ["tools = []", "for i in [1]:\n    tools.append(np.float32)"]),
        ("return g.kind(x)", ["def g(): pass", "setattr(g, 'kind', np.float32)"]),
        ("import math\nreturn math.k(x)", ["import math as m", "m.k = np.float32"]),
        ("return math.k(x)", ["import math as m", "setattr(m, 'k', np.float32)"]),
        ("return math.k(x)", ["import math", "def g(): math.k = np.float32", "g()"]),
        ("return kind(x)", ["kind = None", "globals().update(kind=np.float32)"]),
        ("return kind(x)", ["kind = None", "exec('kind = np.float32')"]),
        ("return kind(x)", ["kind = None", "get_ipython().push({'kind': np.float32})"]),
    ],
)
def test_code_beside_it_that_may_change_it_unseen_counts(body: str, others: list[str]) -> None:
    assert set(uses(body, *others)) == {"float32"}


@pytest.mark.parametrize(
    "others",
    [
        ["import torch, os", "os.environ['A'] = '1'", "torch.backends.x = 1"],
        ["import numpy as np", "np.random.seed(0)", "print(np.float32(f(1)))"],
        ["seen = []", "seen.append(np.float32(f(1)))"],  # which `f` doesn't use
        ["get_ipython().run_line_magic('timeit', 'f(1)')", "globals()['x'] = 1"],
    ],
)
def test_code_beside_it_that_changes_nothing_of_it_does_not_count(others: list[str]) -> None:
    assert uses("return x", *others) == []


def test_other_exercises_may_use_it() -> None:
    assert uses("return x", "def g(x): return np.float32(x)", "y = f(np.float32(2))") == []


def test_a_local_variable_is_no_use_of_the_global_one() -> None:
    check = "for bits in range(9):\n    print(np.float32(bits))\nx = np.float32(1)"
    assert uses("bits = x + 1\nreturn bits", check) == []
    assert uses("bits = x + 1\nreturn bits", check, ban=LOOPS) == []
    assert uses("return bits", check)  # here it is the global one


def test_only_the_imports_that_it_goes_by_count() -> None:
    assert uses("return np.uint32(x)", "import numpy as np, torch") == []
    assert uses("return uint32(x)", "from numpy import float32, uint32") == []
    assert uses("return float32(x)", "from numpy import float32, uint32") == ["float32"]


def test_an_earlier_attempt_does_not_count() -> None:
    earlier = "def f(x): return np.float32(x)"
    assert uses("return x", earlier) == []
    assert names_used(CASTS, ["f"], ["def f(x): return x", earlier]) == ["float32"]


def test_an_earlier_attempt_that_is_kept_under_another_name_counts() -> None:
    assert uses("return g(x)", "def f(x): return np.float32(x)", "g = f") == ["float32"]


def test_what_is_bound_under_a_condition_counts_along_with_what_was() -> None:
    earlier = "def f(x): return np.float32(x)"
    late = "if False:\n    def f(x): return x"
    assert names_used(CASTS, ["f"], [earlier, late]) == ["float32"]


def test_what_changes_a_class_or_a_module_counts() -> None:
    assert uses("return A.g(x)", "class A: pass", "A.g = np.float32") == ["float32"]


def test_cells_that_are_no_python_are_passed_over() -> None:
    assert uses("return g(x)", "%matplotlib inline\nimport numpy", "def g(:", "def g(x): x") == []


def test_nothing_banned_looks_at_nothing() -> None:
    assert uses("return np.float32(x)", ban=NOTHING_BANNED) == []


# Each takes a text and puts it one level deeper.
NESTS = {
    "comparisons": "(x == {0})",
    "chains of comparisons": "(x < {0} < x)",
    "booleans of comparisons": "(x and not (x == {0}) or x)",
    "comparisons of calls": "g(x == {0})",
    "comparisons of subscripts": "x[x == {0}]",
    "questions": "isinstance(x, {0})",
    "comparisons in lambdas": "(lambda y: y != {0})",
}


@pytest.mark.parametrize("nest", NESTS.values(), ids=NESTS)
def test_its_work_grows_with_the_code_and_not_with_its_square(
    nest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visits, children = [0], ast.iter_child_nodes

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        visits[0] += 1
        return children(node)

    monkeypatch.setattr(ast, "iter_child_nodes", counted)
    text = "[" + "x," * 1000 + "]"
    shallow = 0
    for depth in (1, 60):
        for _ in range(depth):
            text = nest.format(text)
        visits[0] = 0
        assert uses(f"return {text}") == []
        shallow = shallow or visits[0]
    assert visits[0] < 2 * shallow, "60 levels around a thousand nodes are a few hundred nodes more"
