"""Calculator of swapping: saved tensors go to the host and back while compute runs.

Plans that swap and recompute take a longer search, so their row follows later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import ipywidgets
import traitlets

from peakmem.core.errors import Infeasible
from peakmem.core.units import GB, MB
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.offload import joint_in_pieces, with_offload
from peakmem.plan.plan import Plan
from peakmem.plan.rotor import optimal
from peakmem.plan.segments import keep_all
from peakmem.plan.simulator import Simulation, simulate
from peakmem.show.palette import ACTIONS, OWNERS, ink_on
from peakmem.show.widgets import svg
from peakmem.show.widgets.calculator import Calculator, Result
from peakmem.show.widgets.parts import table

__all__ = ["swap"]

_PLANS = ("keep all", "swap", "recompute", "both")
_Asked = tuple[Chain, int, int]
_Outcome = Simulation | str  # a sentence says why no such plan fits
_NAMES = {"keep": "forward", "checkpoint": "forward", "drop": "forward"}


def swap(*, predict: bool = False) -> Calculator:
    """Return a calculator that keeps, swaps or recomputes stages' saved tensors, or does both.

    Traits: plan, stages (2 to 8), saved_mb (per stage), forward_ms (per stage; backward takes twice
    as long), link (GB per second), budget (percent of the peak of keeping all). With `predict`, the
    result is hidden until the viewer has guessed how long a step with swaps takes.
    """
    return _Swap(predict)


class _Swap(Calculator):
    plan = traitlets.Unicode("swap")
    stages = traitlets.Int(6)
    saved_mb = traitlets.Int(400)
    forward_ms = traitlets.Float(10.0)
    link = traitlets.Float(32.0)
    budget = traitlets.Int(50)

    def __init__(self, predict: bool) -> None:
        self._both: dict[_Asked, _Outcome] = {}  # the last search, kept while only the plan changes
        field = ipywidgets.BoundedFloatText  # a slider would round what a preset sets
        super().__init__(
            {
                "plan": ipywidgets.Dropdown(options=_PLANS, description="plan"),
                "stages": ipywidgets.IntSlider(6, 2, 8, description="stages"),
                "saved_mb": ipywidgets.IntSlider(400, 10, 2000, step=10, description="MB / stage"),
                "forward_ms": field(10, min=0.1, max=1000, step=1, description="forward, ms"),
                "link": field(32, min=1, max=1000, step=1, description="link, GB/s"),
                "budget": ipywidgets.IntSlider(50, 1, 100, description="budget, %"),
            },
            question="How many ms does a step with swaps take?" if predict else None,
            presets={
                "PCIe 4": {"link": 32.0},
                "PCIe 3, quick stages": {"link": 16.0, "forward_ms": 5.0},
                "NVLink to the host": {"link": 450.0},
            },
        )

    def answer(self) -> Result:
        chain, budget, link = asked = self._asked()
        runs: dict[str, _Outcome | None] = {
            name: _run(chain, name, budget, link) for name in _PLANS if name != "both"
        }
        runs["both"] = self._both.get(asked)
        rows = [(name, *_in_words(run, budget)) for name, run in runs.items()]
        copy_ms = 1000 * chain.stages[0].saved_bytes / link
        words = table(rows, ("plan", "one step", "peak", f"in {budget / MB:,.0f} MB"))
        words += f"<p>{_rule(copy_ms, self.forward_ms)}</p>"
        swapped, chosen = runs["swap"], runs[self.plan]
        figure = (1000 * swapped.makespan, "ms") if isinstance(swapped, Simulation) else None
        if isinstance(chosen, str):
            words += f"<p><b>{self.plan}</b>: {chosen}</p>"
        picture = _draw(chosen, budget, self.plan) if isinstance(chosen, Simulation) else ""
        return Result(words, picture, figure)

    def later(self) -> Iterator[None]:
        """Search for a plan that swaps and recomputes, and show it."""
        chain, budget, link = asked = self._asked()
        if asked in self._both:
            return
        try:
            plan = yield from joint_in_pieces(chain, budget, link)
            self._both = {asked: simulate(chain, plan)}
        except Infeasible as error:
            self._both = {asked: str(error)}
        self._put(self.answer())

    def _asked(self) -> _Asked:
        """The chain, the budget in bytes, and the link's bytes per second."""
        chain = _chain(self.stages, self.saved_mb, self.forward_ms)
        most = simulate(chain, keep_all(chain)).peak_bytes
        return chain, self.budget * most // 100, int(self.link * GB)


@lru_cache(maxsize=64)
def _chain(n: int, saved_mb: int, forward_ms: float) -> Chain:
    """Return equal stages; a transformer layer's output is 1/17 of the 34 sbh that it saves."""
    saved = saved_mb * MB
    stage = Stage(forward_ms / 1000, 2 * forward_ms / 1000, saved, saved // 17)
    return Chain((stage,) * n)


@lru_cache(maxsize=256)
def _run(chain: Chain, name: str, budget_bytes: int, link: int) -> _Outcome:
    """Return a plan's simulation, or the sentence that says why no such plan fits."""
    try:
        return simulate(chain, _plan(chain, name, budget_bytes, link))
    except Infeasible as error:
        return str(error)


def _plan(chain: Chain, name: str, budget_bytes: int, link: int) -> Plan:
    if name == "swap":
        return with_offload(chain, budget_bytes, link)
    if name == "recompute":
        return optimal(chain, budget_bytes, slots=200)
    return keep_all(chain)


def _in_words(run: _Outcome | None, budget_bytes: int) -> tuple[str, str, str]:
    if run is None:
        return "...", "...", "..."
    if isinstance(run, str):
        return "-", "-", "does not fit"
    fits = "fits" if run.peak_bytes <= budget_bytes else "does not fit"
    return f"{1000 * run.makespan:,.3g} ms", f"{run.peak_bytes / MB:,.0f} MB", fits


def _rule(copy_ms: float, forward_ms: float) -> str:
    what = f"A stage's copy takes {copy_ms:.3g} ms, its forward {forward_ms:.3g} ms: "
    if copy_ms <= forward_ms:
        return what + "<b>copies hide behind compute</b>."
    return what + "<b>compute waits for the link</b>."


def _draw(run: Simulation, budget_bytes: int, name: str) -> str:
    """Draw compute, the link below it, and live memory under both."""
    end = max(span.end for span in run.spans)
    across = svg.Scale(0, 1000 * end, 70, svg.WIDTH - 12)
    parts = [svg.text(4, 33, "compute"), svg.text(4, 69, "link")]
    seen: set[int] = set()
    for row in (12, 48):
        parts.append(svg.rect(70, row, svg.WIDTH - 82, 32, "#f2f2f2"))
    for span in run.spans:
        copy = span.kind in ("out", "in")
        forward = span.kind in _NAMES
        again = forward and span.stage in seen
        seen |= {span.stage} if forward else set()
        x, wide = across(1000 * span.start), across(1000 * span.end) - across(1000 * span.start)
        what = "forward again" if again else _NAMES.get(span.kind, span.kind)
        fill = ACTIONS[what]
        title = f"{what} of stage {span.stage + 1}: {1000 * span.start:.3g} to "
        title += f"{1000 * span.end:.3g} ms"
        y = 48 if copy else 12
        parts.append(svg.rect(x, y, max(wide - 0.6, 0.6), 32, fill, title=title))
        if wide >= 14:
            middle, ink = x + wide / 2, ink_on(fill)
            parts.append(svg.text(middle, y + 21, f"{span.stage + 1}", anchor="middle", colour=ink))
    parts += _memory(run, budget_bytes, across)
    for (what, colour), x in zip(ACTIONS.items(), (20, 104, 236, 340, 404), strict=True):
        parts += svg.key(x, 262, colour, what)
    label = f"{name}: compute, copies and live memory over {1000 * run.makespan:.3g} ms"
    return svg.picture(286, parts, label)


def _memory(run: Simulation, budget_bytes: int, across: svg.Scale) -> list[str]:
    most = max(run.peak_bytes, budget_bytes) / MB
    up = svg.Scale(0, most, 210, 118)
    parts = [svg.axis_y(up, 70, "MB in memory")]
    points = [(across(0), up(0))]
    for event in run.timeline:
        x, y = across(1000 * event.time), up(event.live_bytes / MB)
        points += [(x, points[-1][1]), (x, y)]
    parts.append(svg.path(points, colour=OWNERS["activation"]))
    y = up(budget_bytes / MB)
    parts.append(svg.line(70, y, svg.WIDTH - 12, y, width=2, dash="6 3"))
    parts.append(svg.text(svg.WIDTH - 14, y - 5, "budget", anchor="end"))
    parts.append(svg.axis_x(across, 210, "time, ms"))
    return parts
