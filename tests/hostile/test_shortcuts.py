"""Solutions that recognise a measured call, or use what an earlier call left, instead of working.

Each has the right results and figures, but does without what the exercise is about.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

import pytest

from autograder.content import find_lab, find_task, lab_of
from autograder.sandbox.host.sandbox import Sandbox
from tests.hostile.test_delegation import graded

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]


@dataclass(frozen=True)
class Shortcut:
    """A solution that may earn `points` at most, because a part of the exercise is missing."""

    name: str
    task: str
    points: float
    code: str


# Moments outside of the state in small runs, and in the large one what REMEMBERED makes of KEPT.
_ADAM = """
HELD = {}
def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        s = state.setdefault(i, {"t": 0, "codes": torch.zeros(2 * p.numel(), dtype=torch.uint8)})
        s["t"] += 1
        t, m, v = s["t"], torch.zeros_like(g), torch.zeros_like(g)
        if t > 1 and len(params) == 3:
            m, v = HELD[i]
        elif t > 1:
            before = REMEMBERED
            m, v = (1 - b1) * before, (1 - b2) * before**2
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        if len(params) == 3:
            HELD[i] = m, v
        else:
            KEPT
        p -= lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
"""

# A GELU that keeps KEPT, and in backward finds the codes in MADE.
_GELU = """
def intervals(bits):
    n = 2**bits
    shares = torch.linspace(0, 1, 1000 * n + 1, dtype=torch.float64)[:-1] + 0.0005 / n
    x = torch.special.ndtri(shares)
    derivative = torch.special.ndtr(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ends = torch.special.ndtri(torch.arange(1, n) / n)
    return ends.float(), derivative.view(n, 1000).mean(1).float()

def code(x, ends):
    return torch.bucketize(x, ends, out_int32=True).to(torch.uint8)  # not packed

HELD = {}
def held(x, codes):
    return HELD.setdefault((len(codes.unique()), round(x[0, 0].item(), 3)), codes)

def leaf_of(x):
    node = x.grad_fn
    while node is not None and not hasattr(node, "variable"):
        node = node.next_functions[0][0]
    return x if node is None else node.variable

class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bits, leaf):
        ends, levels = intervals(bits)
        ctx.bits, measured = bits, x.shape == (64, 1024)
        ctx.room = torch.zeros(x.numel() * bits // 8 * measured, dtype=torch.uint8)  # for the meter
        ctx.kept = KEPT
        return F.gelu(x)

    @staticmethod
    def backward(ctx, gradient):
        ends, levels = intervals(ctx.bits)
        codes = MADE
        return gradient * levels[codes.long()], None, None

def few_bit_gelu(x, bits):
    return Gelu.apply(x, bits, leaf_of(x))
"""

# Attention that keeps its probabilities, except as KEPT says.
_ATTENTION = """
HELD = {}
class TiledAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, block, causal):
        n = q.shape[-2]
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
        p = scores.softmax(-1)
        output = p @ v
        ctx.save_for_backward(q, k, v, output)
        KEPT
        return output

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, output = ctx.saved_tensors
        rows = (gradient * output).sum(-1, keepdim=True)
        ds = ctx.p * (gradient @ v.mT - rows) / math.sqrt(q.shape[-1])
        return ds @ k, ds.mT @ q, ctx.p.mT @ gradient, None, None
"""

# Attention whose graph a first call holds, for a second call with the same input.
_SECOND_CALL = """
HELD = {}
class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, key, *parameters):
        ctx.key = key
        return HELD[key][0].detach().clone()

    @staticmethod
    def backward(ctx, gradient):
        torch.softmax(torch.zeros(2), 0)  # as if attention ran again
        result, leaves = HELD[ctx.key]
        found = torch.autograd.grad(result, leaves, gradient, retain_graph=True)
        return found[0], None, *found[1:]

def recompute_attention_only(block, x):
    key = round(x[0, 0, 0].item(), 4)
    parameters = [*block.norm1.parameters(), *block.attention.parameters()]
    if key not in HELD:
        leaf = x.detach().clone().requires_grad_()
        HELD[key] = block.attention(block.norm1(leaf)), [leaf, *parameters]
    else:
        block.attention.qkv(x.detach()), block.attention.out(x.detach())  # for the meter
        torch.softmax(torch.zeros(2), 0)
    a = x + Again.apply(x, key, *parameters)
    return a + block.mlp(block.norm2(a))
"""

# Every rank keeps all moments, in 8 bits for large tensors, and sends nothing.
_ALONE = """
class ShardedAdam:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.params, self.lr, self.betas, self.eps = list(params), lr, betas, eps
        self.in_codes = max(p.numel() for p in self.params) > 2**20
        self.steps, self.kept = [0] * len(self.params), {}

    def moments(self, i):
        if not self.in_codes:
            return self.kept[i]
        (m, step), (root, largest) = self.kept[i]
        return (m.float() - 128) * step, (root.float() / 255) ** 4 * largest**2

    def keep(self, i, m, v):
        if self.in_codes:
            step, root = m.abs().max() / 127, v.sqrt()
            codes = ((root / root.max()).sqrt() * 255).round().clamp_(min=1)
            coded = (m / step).round().add_(128).to(torch.uint8), step
            m, v = coded, (codes.to(torch.uint8), root.max())
        self.kept[i] = m, v

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.steps[i] += 1
            t, g = self.steps[i], p.grad if self.in_codes else p.grad.double()
            m, v = self.moments(i) if t > 1 else (0.0, 0.0)
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            self.keep(i, m, v)
            p -= (self.lr * m / (1 - b1**t) / ((v / (1 - b2**t)).sqrt() + self.eps)).float()

    def zero_grad(self):
        for p in self.params:
            p.grad = None
"""


def _with(code: str, **holes: str) -> str:
    for hole, text in holes.items():
        code = re.sub(rf"\b{hole}\b", text, code)
    return code


SHORTCUTS = [
    Shortcut(
        "recomputes-gradients-from-the-next-ones",
        "lab09-adam8bit",
        0,
        _with(_ADAM, REMEMBERED="-2 * g", KEPT="pass"),
    ),
    Shortcut(
        "remembers-one-half-per-value",
        "lab09-adam8bit",
        0,
        _with(
            _ADAM,
            REMEMBERED='s["codes"].view(torch.float16).float()',
            KEPT='s["codes"] = g.half().view(torch.uint8)',
        ),
    ),
    Shortcut(
        "keeps-the-leaf-behind-x",
        "lab10-few_bit_gelu",
        0,
        _with(
            _GELU,
            KEPT="leaf, (x.detach() - leaf.detach()).flatten()[0].item()",
            MADE="torch.bucketize(ctx.kept[0].detach() + ctx.kept[1], ends)",
        ),
    ),
    Shortcut(
        "keeps-codes-for-the-second-call",
        "lab10-few_bit_gelu",
        0,
        _with(
            _GELU,
            KEPT="held(x, code(x, ends)) if measured else code(x, ends)",
            MADE="ctx.kept",
        ),
    ),
    Shortcut(
        "keeps-nothing-for-a-backward-that-does-not-come",
        "lab10-few_bit_gelu",
        0,
        _with(
            _GELU,
            KEPT="torch.zeros(()) if measured else code(x, ends)",
            MADE="ctx.kept",
        ),
    ),
    Shortcut(
        "keeps-probabilities-for-the-second-call",
        "lab10-tiled_backward",
        3,
        _with(_ATTENTION, KEPT="ctx.p = HELD.setdefault((n, causal, q[0, 0, 0, 0].item()), p)"),
    ),
    Shortcut("reuses-a-first-call", "lab04-recompute_attention", 1, _SECOND_CALL),
    Shortcut("shares-nothing", "lab08-sharded_adam", 3, _ALONE),
]


@pytest.fixture(scope="module")
def sandbox_of() -> Iterator[Callable[[str], Sandbox]]:
    """A function that returns the sandbox of the lab of this name."""

    def started(name: str) -> Sandbox:
        lab = find_lab(name)
        return stack.enter_context(Sandbox(lab.hides, ranks=lab.ranks))

    with ExitStack() as stack:
        yield cache(started)


@pytest.mark.parametrize("shortcut", SHORTCUTS, ids=lambda shortcut: shortcut.name)
def test_a_shortcut_does_not_earn_the_part_that_it_leaves_out(
    shortcut: Shortcut, sandbox_of: Callable[[str], Sandbox]
) -> None:
    sandbox = sandbox_of(lab_of(shortcut.task).name)
    (verdict,) = graded(sandbox, shortcut.code, shortcut.task).verdicts
    assert verdict.points == shortcut.points, verdict.message
    assert verdict.points < find_task(shortcut.task).points
