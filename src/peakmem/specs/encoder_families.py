"""Parameters of families with an encoder, read from their configs: BERT, T5 and ViT.

Each function lists the parameters of one class of transformers, which `families` names.
"""

from __future__ import annotations

from typing import Any

from peakmem.specs.model_config import ModelConfig
from peakmem.specs.parameter_table import Group, Parameter, layer_norm, linear, repeated

__all__ = ["bert", "t5", "vit"]


def bert(config: ModelConfig) -> list[Parameter]:
    """Return a masked language model: an encoder, and a head that transforms before it decodes."""
    d, vocab = config.size("hidden_size"), config.size("vocab_size")
    tables = (
        vocab,
        config.size("max_position_embeddings"),
        config.size("type_vocab_size", default=2),
    )
    found = [
        *(Parameter("embedding", (rows, d)) for rows in tables),
        *layer_norm(d),
        *repeated(_layer(d, config.size("intermediate_size")), config.size("num_hidden_layers")),
        *linear("head", d, d, bias=True),
        *layer_norm(d),
        Parameter("head", (vocab,)),
    ]
    tied = config.flag("tie_word_embeddings", default=True)
    # Untied, the decoder has a bias of its own beside the head's.
    return found if tied else found + linear("head", vocab, d, bias=True)


def t5(config: ModelConfig) -> list[Parameter]:
    """Return an encoder and a decoder that share the embedding.

    The first layer of each has a table of relative distances.
    """
    d, vocab = config.size("d_model", "hidden_size"), config.size("vocab_size")
    layers = config.size("num_layers", "num_hidden_layers")
    heads = config.size("num_heads", "num_attention_heads")
    inner = heads * config.size("d_kv", "head_dim")
    norm = Parameter("norm", (d,))
    attention = [Parameter("attention", (inner, d))] * 3 + [Parameter("attention", (d, inner))]
    mlp = _t5_mlp(config, d)
    distances = (config.size("relative_attention_num_buckets", default=32), heads)
    found = [
        Parameter("embedding", (vocab, d)),
        *repeated([norm, *attention, norm, *mlp], layers),
        # A decoder layer attends to the encoder as well.
        *repeated(
            [norm, *attention, norm, *attention, norm, *mlp],
            config.size("num_decoder_layers", default=layers),
        ),
        Parameter("attention", distances, copies=2),
        Parameter("norm", (d,), copies=2),
    ]
    # T5 1.1 and Flan-T5 have an untied head.
    tied = config.flag("tie_word_embeddings", default=True)
    return found if tied else [*found, Parameter("head", (vocab, d))]


def vit(config: ModelConfig) -> list[Parameter]:
    """Return an image classifier: patches, a class token, an encoder and a linear head."""
    d, channels = config.size("hidden_size"), config.size("num_channels", default=3)
    image, patch = (_height_and_width(config, name) for name in ("image_size", "patch_size"))
    patches = (image[0] // patch[0]) * (image[1] // patch[1])
    layer = _layer(
        d,
        config.size("intermediate_size"),
        qkv_bias=config.flag("qkv_bias", default=True),
    )
    return [
        Parameter("embedding", (1, 1, d)),
        Parameter("embedding", (1, patches + 1, d)),
        Parameter("embedding", (d, channels, *patch)),
        Parameter("embedding", (d,)),
        *repeated(layer, config.size("num_hidden_layers")),
        *layer_norm(d),
        *linear("head", _labels(config), d, bias=True),
    ]


def _t5_mlp(config: ModelConfig, d: int) -> list[Parameter]:
    inner = config.size("d_ff")
    kind = config.values.get("feed_forward_proj", "relu")
    if not isinstance(kind, str):
        raise ValueError(
            f"{config.source}: expected feed_forward_proj such as 'relu' or 'gated-gelu', but got "
            f"{kind!r}; correct the entry"
        )
    into = 2 if kind.split("-")[0] == "gated" else 1
    return [Parameter("mlp", (inner, d))] * into + [Parameter("mlp", (d, inner))]


def _height_and_width(config: ModelConfig, name: str) -> tuple[int, int]:
    """Return a size as height and width; the config may have one number for both."""
    value: Any = config.values.get(name)
    if isinstance(value, list) and len(value) == 2:
        height, width = (
            ModelConfig(config.source, {**config.values, name: part}).size(name) for part in value
        )
        return height, width
    return (config.size(name),) * 2


def _labels(config: ModelConfig) -> int:
    """Return the number of labels; if the config has none, 2, as in transformers."""
    names = config.values.get("id2label")
    if isinstance(names, dict) and names:
        return len(names)
    return config.size("num_labels", default=2)


def _layer(d: int, inner: int, *, qkv_bias: bool = True) -> list[Parameter]:
    """Return an encoder layer: attention, an MLP of two matrices, two layer norms."""
    sizes: tuple[tuple[Group, int, int, bool], ...] = (
        ("attention", d, d, qkv_bias),
        ("attention", d, d, qkv_bias),
        ("attention", d, d, qkv_bias),
        ("attention", d, d, True),
        ("mlp", inner, d, True),
        ("mlp", d, inner, True),
    )
    found = [*layer_norm(d), *layer_norm(d)]
    for group, wide, narrow, bias in sizes:
        found += linear(group, wide, narrow, bias=bias)
    return found
