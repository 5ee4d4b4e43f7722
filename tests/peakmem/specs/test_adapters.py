"""The layers that get adapters, by their common names."""

import pytest

from peakmem.specs.adapters import adapted_groups, adapted_layers, read_targets

LLAMA = [f"attention.{p}" for p in ("q", "k", "v", "out")] + [f"mlp.{p}" for p in ("up", "down")]
GPT = ["attention.qkv", "attention.out", "mlp.up", "mlp.down"]


@pytest.mark.parametrize(
    ("text", "known", "expected"),
    [
        ("q_proj,v_proj", LLAMA, {"attention.q", "attention.v"}),
        ("attention.qkv", LLAMA, {"attention.q", "attention.k", "attention.v"}),
        ("o_proj, down_proj", LLAMA, {"attention.out", "mlp.down"}),
        ("all-linear", LLAMA, set(LLAMA)),
        ("attention", GPT, {"attention.qkv", "attention.out"}),
        ("c_attn", GPT, {"attention.qkv"}),
        ("c_proj", GPT, {"attention.out", "mlp.down"}),
        ("mlp,mlp.up", GPT, {"mlp.up", "mlp.down"}),
    ],
)
def test_names_of_layers(text: str, known: list[str], expected: set[str]) -> None:
    assert adapted_layers(read_targets(text), known) == expected


@pytest.mark.parametrize("text", ["gate_proj", "q_proj,embed", "c_fc"])
def test_an_unknown_name_is_refused_with_those_there_are(text: str) -> None:
    known = LLAMA[:4]
    with pytest.raises(ValueError, match=r"has no layers .* choose from all-linear, attention, "):
        adapted_layers(read_targets(text), known)


def test_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="but got ' , '"):
        read_targets(" , ")
    with pytest.raises(ValueError, match="is empty"):
        adapted_layers([], LLAMA)


def test_a_table_knows_kinds_only() -> None:
    assert (
        adapted_groups(["mlp", "attention"])
        == {"attention", "mlp"}
        == adapted_groups(["all-linear"])
    )
    with pytest.raises(ValueError, match="known by kind only, not as 'q_proj'"):
        adapted_groups(["q_proj"])
