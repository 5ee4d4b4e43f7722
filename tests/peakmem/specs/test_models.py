"""Parameter counts against published integers and against formulas written the other way round."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmem.specs import models
from peakmem.specs.models import (
    GPT3_TABLE,
    MODELS,
    ModelShape,
    model,
    parameter_count,
    parameter_tensors,
)

# GPT: exact sums for a tied head and all biases. Llama: the sizes of the released checkpoints.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "gpt3-small": 125_226_240,
    "gpt3-medium": 355_871_744,
    "gpt3-large": 760_300_032,
    "gpt3-xl": 1_315_723_264,
    "gpt3-xl-24x128": 1_517_123_584,
    "gpt3-2.7b": 2_651_553_280,
    "gpt3-6.7b": 6_658_404_352,
    "gpt3-13b": 12_952_938_780,
    "gpt3-13b-40x128": 12_853_386_240,
    "gpt3-175b": 174_604_259_328,
    "llama-65b": 65_285_660_672,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
}
sizes = st.integers(1, 40)


def test_every_row_has_a_published_count():
    assert {name: sum(parameter_count(model(name)).values()) for name in MODELS} == PUBLISHED
    assert all(hasattr(models, name) for name in models.__all__)


def test_two_rows_of_the_table_are_inconsistent():
    wrong = [row["name"] for row in GPT3_TABLE if row["n_heads"] * row["d_head"] != row["d_model"]]
    assert wrong == ["GPT-3 XL", "GPT-3 13B"]
    assert len(GPT3_TABLE) == 8
    # Read by its heads, XL has 0.2B more: four matrices that are half as wide again.
    more = PUBLISHED["gpt3-xl-24x128"] - PUBLISHED["gpt3-xl"]
    assert more == 24 * (4 * 2048 * 1024 + 3 * 1024)


def test_untied_gpt3_has_a_head_of_its_own():
    gpt3 = ModelShape("untied", 96, 12288, 96, 50257, 2048, tied=False)
    count = parameter_count(gpt3)
    assert count["head"] == 50257 * 12288
    assert sum(count.values()) == PUBLISHED["gpt3-175b"] + 50257 * 12288  # 175.2B


@given(layers=sizes, heads=sizes, width=sizes, vocab=sizes, context=sizes)
def test_gpt_by_component(layers, heads, width, vocab, context):
    d = heads * width
    count = parameter_count(ModelShape("any", layers, d, heads, vocab, context))
    assert count == {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": layers * (4 * d * d + 4 * d),
        "mlp": layers * (8 * d * d + 5 * d),
        "layer_norms": layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0,
    }


@given(layers=sizes, groups=sizes, kv_heads=sizes, d_head=sizes, d_ff=sizes, vocab=sizes)
def test_llama_by_component(layers, groups, kv_heads, d_head, d_ff, vocab):
    d = groups * kv_heads * d_head
    llama = ModelShape(
        "any",
        *(layers, d, groups * kv_heads, vocab, 7),
        kv_heads=kv_heads,
        d_ff=d_ff,
        gated=True,
        biases=False,
        learned_positions=False,
        tied=False,
    )
    count = parameter_count(llama)
    assert count["attention"] == layers * (2 * d * d + 2 * d * kv_heads * d_head)
    assert count["mlp"] == layers * 3 * d * d_ff
    assert count["layer_norms"] + count["final_norm"] == (2 * layers + 1) * d
    assert (count["token_embedding"], count["head"]) == (vocab * d, vocab * d)
    assert count["position_embedding"] == 0


def test_names_of_parameters_are_distinct():
    names = [parameter.name for parameter in parameter_tensors(model("llama3-8b"))]
    assert len(set(names)) == len(names) == 32 * 9 + 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_layers": 0}, "n_layers to be a whole number of at least 1, but got 0"),
        ({"d_model": 64.0}, "d_model to be a whole number"),
        ({"vocab": True}, "vocab to be a whole number"),
        ({"d_ff": -1}, "d_ff to be a whole number"),
        ({"kv_heads": 3}, "4 query heads cannot share 3"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change, message):
    shape = {"n_layers": 2, "d_model": 64, "n_heads": 4, "vocab": 100, "context": 32}
    with pytest.raises(ValueError, match=message):
        ModelShape("bad", **{**shape, **change})


def test_an_unknown_model_is_refused():
    with pytest.raises(ValueError, match=r"'gpt4' .*; known are gpt2, .*llama3-405b"):
        model("gpt4")
