"""ZeRO and tensor parallelism against the figures that the papers print."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.scale.parallelism import (
    RESIDUAL_STATES,
    activation_bytes_per_layer,
    offload_link_bytes,
    zero_communicated_bytes,
    zero_states,
)
from peakmem.specs.models import ModelShape, model

GB, MIB = 10**9, 2**20


def megatron(name: str, n_layers: int, d_model: int, n_heads: int) -> ModelShape:
    return ModelShape(name, n_layers, d_model, n_heads, vocab=51200, context=2048)


# Korthikanti et al. 2022, table 3.
KORTHIKANTI = {
    "22B": (megatron("22B", 48, 6144, 64), 4, 1264, (66.8, 49.4, 16.1, 7.6)),
    "175B": (megatron("175B", 96, 12288, 96), 1, 552, (62.0, 56.5, 18.5, 8.7)),
    "530B": (megatron("530B", 105, 20480, 128), 1, 840, (58.3, 61.9, 20.2, 9.5)),
    "1T": (megatron("1T", 128, 25600, 160), 1, 1050, (58.3, 61.9, 20.2, 9.5)),
}


@pytest.mark.parametrize(
    ("billions", "devices", "printed"),
    [(7.5, 64, (120, 31.4, 16.6, 1.9)), (128, 64, (2048, 536, 284, 32))],
)
def test_zero_figure_1(billions: float, devices: int, printed: tuple[float, ...]) -> None:
    found = [zero_states(int(billions * GB), devices, stage).total / GB for stage in (0, 1, 2, 3)]
    assert found == pytest.approx(printed, abs=0.06 if billions < 100 else 0.5)


def test_a_trillion_parameters_on_1024_devices() -> None:
    assert zero_states(10**12, 1024, 3).total / GB == pytest.approx(15.6, abs=0.05)


def test_offload_trains_13b_on_one_v100_and_its_host_takes_the_rest() -> None:
    assert zero_states(13 * GB, 1, 0).total > 32 * GB
    assert zero_states(13 * GB, 1, 0, offload=True).total == 26 * GB < 32 * GB
    assert offload_link_bytes(13 * GB) == 52 * GB


@given(st.integers(1, 10**12), st.integers(1, 4096), st.sampled_from([0, 1, 2, 3]))
def test_shards_make_up_the_whole(n: int, devices: int, stage: int) -> None:
    whole, part = zero_states(n, 1, 0), zero_states(n, devices, stage)
    assert whole.total == 16 * n
    for name, first in (("parameters", 3), ("gradients", 2), ("optimizer", 1)):
        mine, all_of = getattr(part, name), getattr(whole, name)
        if stage < first:
            assert mine == all_of
        else:
            assert all_of <= mine * devices < all_of + 12 * devices
    assert zero_states(n, 1, stage) == whole  # alone, nothing is cut


@given(st.integers(1, 10**9), st.integers(1, 512))
def test_communication(n: int, devices: int) -> None:
    volume = [zero_communicated_bytes(n, devices, stage) for stage in (0, 1, 2, 3)]
    assert volume[0] == volume[1] == volume[2] <= volume[3] <= 6 * n
    assert zero_communicated_bytes(n, 1, 3) == 0


@pytest.mark.parametrize("name", KORTHIKANTI)
def test_korthikanti_table(name: str) -> None:
    shape, batch, mib, percent = KORTHIKANTI[name]

    def kept(recompute: str = "none", sequence_parallel: bool = False) -> int:
        return activation_bytes_per_layer(
            *(shape, batch, 2048),
            tensor=8,
            sequence_parallel=sequence_parallel,
            recompute=recompute,
        )

    assert round(kept() / MIB) == mib
    arms = [kept(sequence_parallel=True), kept("selective"), kept("selective", True), kept("full")]
    assert [100 * arm / kept() for arm in arms] == pytest.approx(percent, abs=0.06)


def test_layer_without_parallelism_is_34_sbh_and_5as2b() -> None:
    shape = model("gpt3-175b")
    sbh = 2048 * shape.d_model
    whole = activation_bytes_per_layer(shape, 1, 2048)
    assert whole == 34 * sbh + 5 * shape.n_heads * 2048**2
    assert activation_bytes_per_layer(shape, 1, 2048, recompute="selective") == 34 * sbh
    assert activation_bytes_per_layer(shape, 1, 2048, recompute="full") == 2 * sbh


def test_residual_states_are_named() -> None:
    names = [state.name for state in RESIDUAL_STATES]
    assert names == ["activations", "temporary buffers", "fragmented memory"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: zero_states(0, 1, 0), "n_parameters"),
        (lambda: zero_states(1, 0, 0), "devices"),
        (lambda: zero_states(1, 1, 4), "stage=4 is unknown; use one of 0, 1, 2, 3"),
        (lambda: zero_communicated_bytes(1, 1, 7), "stage=7 is unknown"),
        (lambda: activation_bytes_per_layer(model("gpt2"), 1, 8, tensor=5), "can.t be cut into 5"),
        (lambda: activation_bytes_per_layer(model("gpt2"), 0, 8), "batch"),
        (lambda: activation_bytes_per_layer(model("gpt2"), 1, 8, recompute="half"), "half"),
    ],
)
def test_bad_input_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
