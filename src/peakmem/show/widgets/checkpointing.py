"""Calculator of checkpointing: a film of one forward and backward, and the price in time.

The film appears at once. Time against memory takes a plan for each budget, so it follows later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import ipywidgets
import traitlets

from peakmem.core.errors import Infeasible
from peakmem.core.units import MB
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.networks import gpt_chain, vgg16_chain
from peakmem.plan.plan import Plan
from peakmem.plan.rotor import optimal
from peakmem.plan.segments import every_k, keep_all
from peakmem.plan.simulator import simulate
from peakmem.show.palette import ACTIONS, OWNERS, SERIES, ink_on
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.frames import Frame, frames
from peakmem.show.widgets.parts import table
from peakmem.specs.models import model

__all__ = ["checkpointing"]

_CHAINS = ("equal stages", "VGG-16, 32 images", "GPT-2, 8 x 1024 tokens")
_PLANS = ("keep all", "every K", "optimal")
_FILL = {"nothing": "#f2f2f2", "output": OWNERS["output"], "all": OWNERS["saved tensors"]}
_LETTERS = {"forward": "F", "forward again": "R", "backward": "B"}
_SLOTS = 200  # of the dynamic program; enough for a picture, and four times as fast as 500
_SHARES = tuple(range(10, 105, 5))  # budgets of the curve, in percent of the peak of "keep all"


def checkpointing(*, predict: bool = False) -> Calculator:
    """Return a calculator of checkpointing.

    Traits: chain, stages (N, of equal stages), plan, every (K), budget (of the optimal plan, in
    percent of the peak of keeping all), step (of the film, from 1). With `predict`, the result is
    hidden until the viewer has guessed how many forwards run again.
    """
    return _Checkpointing(predict)


class _Checkpointing(Calculator):
    chain = traitlets.Unicode(_CHAINS[0])
    stages = traitlets.Int(16)
    plan = traitlets.Unicode("every K")
    every = traitlets.Int(4)
    budget = traitlets.Int(40)
    step = traitlets.Int(1)

    def __init__(self, predict: bool) -> None:
        self._curve = ipywidgets.HTML()
        slider = ipywidgets.IntSlider
        step = slider(1, 1, 40, description="step of the film")
        play = ipywidgets.Play(min=1, max=step.max, interval=400, description="play")
        ipywidgets.jslink((step, "value"), (play, "value"))  # the film starts at the slider
        ipywidgets.jslink((step, "max"), (play, "max"))
        super().__init__(
            {
                "chain": ipywidgets.Dropdown(options=_CHAINS, description="chain"),
                "stages": slider(16, 1, 24, description="N, stages"),
                "plan": ipywidgets.Dropdown(options=_PLANS, description="plan"),
                "every": slider(4, 1, 24, description="K, per segment"),
                "budget": slider(40, 1, 100, description="budget, %"),
                "step": step,
            },
            question="How many forwards run a second time?" if predict else None,
            presets={
                "16 stages, K = 4": {"chain": _CHAINS[0], "plan": "every K", "stages": 16},
                "VGG-16 in 60%": {"chain": _CHAINS[1], "plan": "optimal", "budget": 60},
            },
            subject=["chain"],
            below=[play],
            views={"film": [], "time against memory": [self._curve]},
        )

    def answer(self) -> Result:
        self._controls["stages"].disabled = self.chain != _CHAINS[0]
        self._controls["every"].disabled = self.plan != "every K"
        self._controls["budget"].disabled = self.plan != "optimal"
        chain = _chain(self.chain, self.stages)
        everything = _film(self.chain, self.stages, "keep all", 1, 100)
        film = _film(self.chain, self.stages, self.plan, self.every, self.budget)
        self._controls["step"].max = len(film)  # this moves a later step back to the last one
        again = sum(frame.again for frame in film)
        peak, most = (max(f.live_bytes for f in some) for some in (film, everything))
        time = film[-1].end / chain.work_time - 1
        now = film[self.step - 1]
        rows = [
            ("peak", f"{_size(peak, chain)}, {peak / most:.0%} of keeping all"),
            ("forwards that run again", f"{again}"),
            ("more time", f"{time:.1%}"),
            (f"step {self.step} of {len(film)}", _in_words(now)),
        ]
        limit = self.budget * most // 100 if self.plan == "optimal" else None
        picture = _draw(chain, film, self.step - 1, most, limit)
        return Result(table(rows), picture, (again, "forwards"))

    def later(self) -> Iterator[None]:
        """Draw time against memory: each K, and the optimal plan for a row of budgets."""
        self._curve.value = ""
        if not self.shows("time against memory"):
            return
        chain = _chain(self.chain, self.stages)
        points: dict[str, list[tuple[float, float]]] = {"every K": [], "optimal": []}
        for k in range(1, len(chain) + 1):
            points["every K"].append(_judged(chain, every_k(chain, k)))
        for share in _SHARES:
            yield
            film = _film_or_none(self.chain, self.stages, share)
            if film is not None:
                points["optimal"].append(_place(chain, film))
        mine = _film(self.chain, self.stages, self.plan, self.every, self.budget)
        self._curve.value = _draw_curve(points, _place(chain, mine))


@lru_cache(maxsize=64)
def _chain(name: str, n: int) -> Chain:
    if name == _CHAINS[1]:
        return vgg16_chain(batch=32)
    if name == _CHAINS[2]:
        return gpt_chain(model("gpt2"), batch=8, sequence=1024)
    return Chain((Stage(1.0, 2.0, 1, 1),) * n)


@lru_cache(maxsize=256)
def _film(name: str, n: int, plan: str, every: int, budget: int) -> tuple[Frame, ...]:
    chain = _chain(name, n)
    return frames(chain, _plan(chain, plan, every, budget))


def _plan(chain: Chain, plan: str, every: int, budget: int) -> Plan:
    if plan == "keep all":
        return keep_all(chain)
    if plan == "every K":
        return every_k(chain, every)
    most = simulate(chain, keep_all(chain)).peak_bytes
    return optimal(chain, budget * most // 100, slots=_SLOTS)


def _film_or_none(name: str, n: int, budget: int) -> tuple[Frame, ...] | None:
    try:
        return _film(name, n, "optimal", 1, budget)
    except Infeasible:
        return None


def _place(chain: Chain, film: tuple[Frame, ...]) -> tuple[float, float]:
    """Return a film's peak and time, in percent of keeping all."""
    most = simulate(chain, keep_all(chain)).peak_bytes
    peak = max(frame.live_bytes for frame in film)
    return 100 * peak / most, 100 * film[-1].end / chain.work_time


def _judged(chain: Chain, plan: Plan) -> tuple[float, float]:
    return _place(chain, frames(chain, plan))


def _size(nbytes: int, chain: Chain) -> str:
    if chain.stages[0].saved_bytes == 1:
        return f"{nbytes} stages' activations"
    return f"{nbytes / MB:,.0f} MB"


def _in_words(frame: Frame) -> str:
    kind, i = frame.step
    if kind == "backward":
        return f"backward of stage {i + 1}"
    kept = "keeps all" if kind == "keep" else "keeps the output"
    return f"forward of stage {i + 1}{' again' if frame.again else ''}, {kept}"


def _action(frame: Frame) -> str:
    if frame.step.kind == "backward":
        return "backward"
    return "forward again" if frame.again else "forward"


def _draw(chain: Chain, film: tuple[Frame, ...], now: int, most: int, limit: int | None) -> str:
    """Draw what each stage holds now, and live memory over time up to now."""
    parts = _cells(film[now], len(chain))
    unit = 1 if most < 1000 else MB
    across = svg.Scale(0, film[-1].end, 58, svg.WIDTH - 10)
    up = svg.Scale(0, most / unit, 260, 130)
    label = "stages' activations in memory" if unit == 1 else "MB in memory, weights left out"
    parts.append(svg.axis_y(up, 58, label))
    for n, frame in enumerate(film):
        x, y = across(frame.start), up(frame.live_bytes / unit)
        fill = ACTIONS[_action(frame)] if n <= now else "#ececec"
        wide = max(across(frame.end) - x, 1)
        parts.append(svg.rect(x, y, wide, 260 - y, fill, title=_in_words(frame)))
    if limit is not None:
        parts.append(svg.line(58, up(limit / unit), svg.WIDTH - 10, up(limit / unit), width=2))
        parts.append(svg.text(svg.WIDTH - 12, up(limit / unit) - 5, "budget", anchor="end"))
    time = "time, one forward of a stage = 1" if unit == 1 else "time, 10^9 operations"
    parts.append(svg.axis_x(across, 260, time))
    for n, action in enumerate(_LETTERS):
        parts += svg.key(58 + 140 * n, 308, ACTIONS[action], action)
    return svg.picture(332, parts, f"Step {now + 1} of {len(film)}: {_in_words(film[now])}")


def _cells(frame: Frame, n: int) -> list[str]:
    """Draw a cell for each stage, coloured by what it holds; the running one has a letter."""
    wide = (svg.WIDTH - 20) / n
    parts = [svg.text(10, 18, f"stages 1 to {n}, after this step")]
    for i, held in enumerate(frame.held):
        x = 10 + i * wide
        more = f'stroke="{svg.INK}" stroke-width="{3 if i == frame.step.stage else 0.5}"'
        title = f"stage {i + 1} has {held} in memory"
        parts.append(svg.rect(x + 1, 28, wide - 2, 34, _FILL[held], title=title, more=more))
    letter = _LETTERS[_action(frame)]
    x = 10 + (frame.step.stage + 0.5) * wide
    colour = ink_on(_FILL[frame.held[frame.step.stage]])
    parts.append(svg.text(x, 51, letter, anchor="middle", bold=True, colour=colour))
    for n_th, (what, fill) in enumerate(_FILL.items()):
        x = 10 + 130 * n_th
        label = {"all": "saved tensors"}.get(what, what)
        parts += svg.key(x, 74, fill, label, more=f'stroke="{svg.INK}" stroke-width="0.5"')
    return parts


def _draw_curve(points: dict[str, list[tuple[float, float]]], mine: tuple[float, float]) -> str:
    """Draw time over peak memory, both in percent of keeping all."""
    slowest = max(y for some in (*points.values(), [mine]) for _, y in some)
    across = svg.Scale(0, 100, 58, svg.WIDTH - 16)
    up = svg.Scale(100, max(slowest, 101) * 1.02, 210, 36)
    parts = [
        svg.axis_y(up, 58, "time, % of keeping all"),
        svg.axis_x(across, 210, "peak memory, % of keeping all"),
    ]
    for x, y in points["every K"]:
        parts.append(svg.rect(across(x) - 4, up(y) - 4, 8, 8, SERIES[1], title="every K"))
    best = [(across(x), up(y)) for x, y in points["optimal"]]
    parts.append(svg.path(best, colour=SERIES[0], width=3))
    x, y = across(mine[0]), up(mine[1])
    parts.append(
        f'<circle cx="{x:g}" cy="{y:g}" r="9" fill="none" stroke="{svg.INK}" stroke-width="3"/>'
    )
    parts.append(svg.path([(58, 266), (98, 266)], colour=SERIES[0], width=3))
    parts.append(svg.text(106, 271, "optimal"))
    parts.append(svg.rect(188, 262, 8, 8, SERIES[1]))
    parts.append(svg.text(204, 271, "every K, for each K"))
    parts.append(svg.text(356, 271, "circle: this plan"))
    return svg.picture(284, parts, "Time against peak memory of every K and the optimal plans")
