"""Transformer language models as data, and their parameters, counted exactly by component.

A `ModelShape` has the sizes that determine every parameter's shape. `parameter_tensors` lists the
parameters, and `parameter_count` adds them up. GPT-2 and GPT-3 have learned positions, two layer
norms in each layer and a final one, an MLP of width 4 d_model with GELU, biases everywhere except
in the head, and a head tied to the token embedding. Llama has rotary positions, RMS norms, a gated
MLP (SwiGLU), no biases and an untied head. Its larger and newer models share key and value heads
among query heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod
from types import MappingProxyType
from typing import Any, Literal

from peakmem.core.errors import named, require_whole

__all__ = [
    "GPT3_TABLE",
    "MODELS",
    "Activation",
    "ModelShape",
    "ParameterTensor",
    "model",
    "parameter_count",
    "parameter_tensors",
]

COMPONENTS = (
    "token_embedding",
    "position_embedding",
    "attention",
    "mlp",
    "layer_norms",
    "final_norm",
    "head",
)

Activation = Literal["gelu", "gelu_new"]


@dataclass(frozen=True)
class ModelShape:
    """The sizes of a decoder-only transformer.

    Raises ValueError if a size isn't a whole number of at least 1, or if query heads can't share
    key and value heads equally.

    >>> sum(parameter_count(ModelShape("tiny", 2, 64, 4, vocab=100, context=32)).values())
    108544
    """

    #: The model's name, such as "gpt3-175b".
    name: str
    #: Number of blocks. This and the next four sizes are those that papers print.
    n_layers: int
    #: Width of the residual stream.
    d_model: int
    #: Number of query heads.
    n_heads: int
    #: Number of tokens that the embedding knows.
    vocab: int
    #: The longest sequence, in tokens.
    context: int
    #: Key and value heads; None for as many as `n_heads`.
    kv_heads: int | None = None
    #: Size of a head; None if all heads together are d_model wide.
    d_head: int | None = None
    #: Inner width of the MLP; None for 4 d_model.
    d_ff: int | None = None
    #: Whether the MLP has a third matrix that gates the first (SwiGLU).
    gated: bool = False
    #: Activation of an MLP without a gate: "gelu" is one operator, "gelu_new" the tanh formula in
    #: eight operators, as in Hugging Face's GPT-2.
    activation: Activation = "gelu"
    #: Whether linear layers and norms have biases (the head never has one).
    biases: bool = True
    #: Whether positions are a table of parameters, and one matrix makes queries, keys and values.
    #: If not, positions are rotary, and there are three matrices.
    learned_positions: bool = True
    #: Whether a GPT runs like Hugging Face's GPT2LMHeadModel, which looks positions up by number
    #: and stores matrices transposed. If not, it runs like `peakmem.nn.GPT`.
    hugging_face: bool = False
    #: Whether the head is the token embedding.
    tied: bool = True
    #: Where the sizes are printed.
    source: str = ""

    def __post_init__(self) -> None:
        for size in ("n_layers", "d_model", "n_heads", "vocab", "context"):
            require_whole(f"{self.name}'s {size}", getattr(self, size))
        for size in ("kv_heads", "d_head", "d_ff"):
            if getattr(self, size) is not None:
                require_whole(f"{self.name}'s {size}", getattr(self, size))
        if self.n_heads % self.key_value_heads:
            raise ValueError(
                f"{self.name}: {self.n_heads} query heads cannot share {self.kv_heads} key and "
                "value heads equally; let kv_heads divide n_heads"
            )

    @property
    def attention_width(self) -> int:
        """Width of the queries of all heads together."""
        return self.d_model if self.d_head is None else self.n_heads * self.d_head

    @property
    def key_value_heads(self) -> int:
        """Number of key heads; there are as many value heads."""
        return self.n_heads if self.kv_heads is None else self.kv_heads

    @property
    def key_value_width(self) -> int:
        """Width of the keys of all heads together; the values are as wide."""
        return self.attention_width * self.key_value_heads // self.n_heads

    @property
    def mlp_width(self) -> int:
        """Inner width of the MLP."""
        return 4 * self.d_model if self.d_ff is None else self.d_ff


@dataclass(frozen=True)
class ParameterTensor:
    """One parameter of a model."""

    #: Its name in the module, such as "blocks.3.mlp.up.weight".
    name: str
    #: One of `COMPONENTS`.
    component: str
    #: The shape in torch.
    shape: tuple[int, ...]
    #: Its layer, such as "blocks.3"; empty if it is outside the layers.
    layer: str = ""

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)


def parameter_tensors(shape: ModelShape) -> list[ParameterTensor]:
    """Return every parameter in module order; a tied head isn't a separate parameter.

    >>> [p.name for p in parameter_tensors(model("gpt2"))][:3]
    ['token_embedding.weight', 'position_embedding.weight', 'blocks.0.norm1.weight']
    """
    return list(_tensors(shape))


@lru_cache(maxsize=64)  # one prediction asks for them several times
def _tensors(shape: ModelShape) -> tuple[ParameterTensor, ...]:
    d, vocab = shape.d_model, shape.vocab
    found = [ParameterTensor("token_embedding.weight", "token_embedding", (vocab, d))]
    if shape.learned_positions:
        table = (shape.context, d)
        found.append(ParameterTensor("position_embedding.weight", "position_embedding", table))
    for number in range(shape.n_layers):
        layer = f"blocks.{number}"
        found += [replace(tensor, layer=layer) for tensor in _layer(shape, f"{layer}.")]
    found += _with_bias(shape, "final_norm", "final_norm", (d,))
    if not shape.tied:
        found.append(ParameterTensor("head.weight", "head", (vocab, d)))
    return tuple(found)


def _layer(shape: ModelShape, prefix: str) -> list[ParameterTensor]:
    d, wide, inner = shape.d_model, shape.attention_width, shape.mlp_width
    found = _with_bias(shape, f"{prefix}norm1", "layer_norms", (d,))
    narrow = shape.key_value_width
    heads = {"qkv": wide + 2 * narrow}
    if not shape.learned_positions:  # rotary positions come with three matrices
        heads = {"q": wide, "k": narrow, "v": narrow}
    for name, width in heads.items():
        found += _with_bias(shape, f"{prefix}attention.{name}", "attention", (width, d))
    found += _with_bias(shape, f"{prefix}attention.out", "attention", (d, wide))
    found += _with_bias(shape, f"{prefix}norm2", "layer_norms", (d,))
    for name in ("gate", "up") if shape.gated else ("up",):
        found += _with_bias(shape, f"{prefix}mlp.{name}", "mlp", (inner, d))
    found += _with_bias(shape, f"{prefix}mlp.down", "mlp", (d, inner))
    return found


def _with_bias(
    shape: ModelShape, name: str, component: str, size: tuple[int, ...]
) -> list[ParameterTensor]:
    weight = ParameterTensor(f"{name}.weight", component, size)
    bias = ParameterTensor(f"{name}.bias", component, size[:1])
    return [weight, bias] if shape.biases else [weight]


def parameter_count(shape: ModelShape) -> dict[str, int]:
    """Return the number of parameters by component, over all layers; absent components count 0.

    >>> parameter_count(model("gpt3-175b"))["attention"]
    57986777088
    >>> sum(parameter_count(model("gpt3-175b")).values())
    174604259328
    """
    count = dict.fromkeys(COMPONENTS, 0)
    for parameter in parameter_tensors(shape):
        count[parameter.component] += parameter.elements
    return count


def model(name: str) -> ModelShape:
    """Return the model of that name. Raises ValueError, listing all names, for any other."""
    return named("model", name, MODELS)


_GPT3_SOURCE = "Brown et al. 2020, Language Models are Few-Shot Learners, table 2.1"
_GPT2_SOURCE = "Radford et al. 2019, table 2; the sizes of the released models"

# Table 2.1 as printed. In two rows, heads x head size is not d_model.
GPT3_TABLE: tuple[Mapping[str, Any], ...] = tuple(
    MappingProxyType(
        dict(zip(("name", "n_layers", "d_model", "n_heads", "d_head"), row, strict=True))
    )
    for row in (
        ("GPT-3 Small", 12, 768, 12, 64),
        ("GPT-3 Medium", 24, 1024, 16, 64),
        ("GPT-3 Large", 24, 1536, 16, 96),
        ("GPT-3 XL", 24, 2048, 24, 128),
        ("GPT-3 2.7B", 32, 2560, 32, 80),
        ("GPT-3 6.7B", 32, 4096, 32, 128),
        ("GPT-3 13B", 40, 5140, 40, 128),
        ("GPT-3 175B", 96, 12288, 96, 128),
    )
)


def _gpt3(row: Mapping[str, Any]) -> ModelShape:
    """Return a row of the table; d_model is taken as the width of all heads together."""
    name = row["name"].lower().replace("gpt-3 ", "gpt3-")
    sizes = {key: row[key] for key in ("n_layers", "d_model", "n_heads")}
    return ModelShape(name, vocab=50257, context=2048, source=_GPT3_SOURCE, **sizes)


def _gpt2(name: str, n_layers: int, d_model: int, n_heads: int) -> ModelShape:
    return ModelShape(
        name=name,
        n_layers=n_layers,
        d_model=d_model,
        n_heads=n_heads,
        vocab=50257,
        context=1024,
        source=_GPT2_SOURCE,
    )


_llama2 = partial(
    ModelShape,
    vocab=32000,
    context=4096,
    gated=True,
    biases=False,
    learned_positions=False,
    tied=False,
    source="Touvron et al. 2023, Llama 2; the released configurations",
)
_llama3 = partial(
    _llama2,
    vocab=128256,
    context=8192,
    kv_heads=8,
    source="Grattafiori et al. 2024, The Llama 3 Herd of Models, table 3",
)

_LLAMA1 = "Touvron et al. 2023, LLaMA: Open and Efficient Foundation Language Models, table 2"

_ROWS: tuple[ModelShape, ...] = (
    _gpt2("gpt2", 12, 768, 12),
    _gpt2("gpt2-medium", 24, 1024, 16),
    _gpt2("gpt2-large", 36, 1280, 20),
    _gpt2("gpt2-xl", 48, 1600, 25),
    *map(_gpt3, GPT3_TABLE),
    # The other reading of the two inconsistent rows, by heads x head size. For 13B, it takes the
    # printed 5140 as a misprint; for XL, heads are wider than the model.
    ModelShape("gpt3-xl-24x128", 24, 2048, 24, 50257, 2048, d_head=128, source=_GPT3_SOURCE),
    ModelShape("gpt3-13b-40x128", 40, 5120, 40, 50257, 2048, source=_GPT3_SOURCE),
    _llama2("llama-65b", 80, 8192, 64, d_ff=22016, context=2048, source=_LLAMA1),
    _llama2("llama2-7b", 32, 4096, 32, d_ff=11008),
    _llama2("llama2-13b", 40, 5120, 40, d_ff=13824),
    _llama2("llama2-70b", 80, 8192, 64, kv_heads=8, d_ff=28672),
    _llama3("llama3-8b", 32, 4096, 32, d_ff=14336),
    _llama3("llama3-70b", 80, 8192, 64, d_ff=28672),
    _llama3("llama3-405b", 126, 16384, 128, context=131072, d_ff=53248),
)

MODELS: Mapping[str, ModelShape] = MappingProxyType({row.name: row for row in _ROWS})
