"""The film of a plan: its tensors add up to the simulator's memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.core.errors import Infeasible
from peakmem.plan.chain import Chain, Stage
from peakmem.plan.offload import with_offload
from peakmem.plan.plan import Plan
from peakmem.plan.rotor import optimal
from peakmem.plan.segments import every_k, keep_all
from peakmem.plan.simulator import simulate
from peakmem.show.widgets.frames import frames

stages = st.builds(
    lambda forward, backward, output, more: Stage(forward, backward, output + more, output),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 20),
    st.integers(0, 30),
)
chains = st.builds(Chain, st.lists(stages, min_size=1, max_size=7), st.integers(0, 5))


@st.composite
def planned(draw: st.DrawFn) -> tuple[Chain, Plan]:
    chain = draw(chains)
    most = simulate(chain, keep_all(chain)).peak_bytes
    try:
        plan = optimal(chain, draw(st.integers(most // 3, most)))
    except Infeasible:
        plan = every_k(chain, draw(st.integers(1, 7)))
    return chain, plan


@given(planned())
def test_what_is_held_adds_up_to_what_is_live(made: tuple[Chain, Plan]) -> None:
    chain, plan = made
    film = frames(chain, plan)
    ends = [event for event in simulate(chain, plan).timeline if not event.begins]
    for frame, end in zip(film, ends, strict=True):
        sizes = {"nothing": lambda s: 0, "output": lambda s: s.output_bytes}
        sizes["all"] = lambda s: s.saved_bytes
        held = sum(sizes[h](s) for h, s in zip(frame.held, chain.stages, strict=True))
        assert chain.input_bytes + held == end.live_bytes


@given(planned())
def test_forwards_again_are_the_time_beyond_the_work(made: tuple[Chain, Plan]) -> None:
    chain, plan = made
    film = frames(chain, plan)
    again = sum(chain.stages[frame.step.stage].forward_time for frame in film if frame.again)
    assert film[-1].end == chain.work_time + again
    assert max(frame.live_bytes for frame in film) == simulate(chain, plan).peak_bytes


def test_swaps_are_refused() -> None:
    chain = Chain((Stage(1, 1, 10, 10),) * 4)
    with pytest.raises(ValueError, match="has copies"):
        frames(chain, with_offload(chain, 30, 10))
