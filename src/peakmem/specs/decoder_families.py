"""Parameters of decoder-only families, read from their configs: GPT, Llama, Gemma, DeepSeek, ...

Each function lists the parameters of the family's `...ForCausalLM` in transformers. The default of
an optional entry is that of the family's config class in transformers.

Names in shapes: d hidden size, V vocabulary, E routed experts.

Long because families share layers, and comparing them takes one page.
"""

from __future__ import annotations

from typing import Any

from peakmem.specs.model_config import ModelConfig
from peakmem.specs.parameter_table import Group, Parameter, layer_norm, linear, repeated

__all__ = [
    "deepseek_v2",
    "deepseek_v3",
    "gemma2",
    "gemma3",
    "gpt2",
    "gpt_neox",
    "llama",
    "mistral",
    "mixtral",
    "opt",
    "phi",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
]


# GPT-like families: layer norms, biases, an MLP of two matrices.


def gpt2(config: ModelConfig) -> list[Parameter]:
    """Return GPT-2: one matrix for queries, keys and values, stored transposed (d, 3d)."""
    d, vocab = config.size("n_embd", "hidden_size"), config.size("vocab_size")
    inner = config.size("n_inner", default=4 * d)
    layer = [*layer_norm(d), *layer_norm(d)]
    sizes: tuple[tuple[Group, int, int], ...] = (
        ("attention", d, 3 * d),
        ("attention", d, d),
        ("mlp", d, inner),
        ("mlp", inner, d),
    )
    for group, narrow, wide in sizes:
        layer += [Parameter(group, (narrow, wide)), Parameter(group, (wide,))]
    positions = (config.size("n_positions", "max_position_embeddings"), d)
    return [
        Parameter("embedding", (vocab, d)),
        Parameter("embedding", positions),
        *repeated(layer, config.size("n_layer", "num_hidden_layers")),
        *layer_norm(d),
        *_untied_head(config, vocab, d, tied=True),
    ]


def gpt_neox(config: ModelConfig) -> list[Parameter]:
    """Return GPT-NeoX: one matrix (3d, d) for queries, keys and values; rotary positions."""
    d, vocab, inner = _widths(config)
    bias = config.flag("attention_bias", default=True)
    layer = [
        *layer_norm(d),
        *layer_norm(d),
        *linear("attention", 3 * d, d, bias=bias),
        *linear("attention", d, d, bias=bias),
        *_two_matrices(d, inner, bias=True),
    ]
    return [
        Parameter("embedding", (vocab, d)),
        *repeated(layer, config.size("num_hidden_layers")),
        *layer_norm(d),
        *_untied_head(config, vocab, d, tied=False),
    ]


def opt(config: ModelConfig) -> list[Parameter]:
    """Return OPT: two rows more than positions, and embeddings that may be narrower than d."""
    d, vocab = config.size("hidden_size"), config.size("vocab_size")
    narrow = config.size("word_embed_proj_dim", default=d)
    bias = config.flag("enable_bias", default=True)
    norm = layer_norm(d) if config.flag("layer_norm_elementwise_affine", default=True) else []
    layer = [
        *norm,
        *norm,
        *(part for _ in range(4) for part in linear("attention", d, d, bias=bias)),
        *_two_matrices(d, config.size("ffn_dim"), bias=bias),
    ]
    positions = config.size("max_position_embeddings") + 2
    found = [Parameter("embedding", (vocab, narrow)), Parameter("embedding", (positions, d))]
    if narrow != d:
        found += [Parameter("embedding", (narrow, d)), Parameter("embedding", (d, narrow))]
    found += repeated(layer, config.size("num_hidden_layers"))
    if config.flag("do_layer_norm_before", default=True) and not config.flag(
        "_remove_final_layer_norm", default=False
    ):
        found += norm
    return found + _untied_head(config, vocab, narrow, tied=True)


def phi(config: ModelConfig) -> list[Parameter]:
    """Return Phi: one norm in each layer, shared by attention and MLP; a head with a bias."""
    d, vocab, inner = _widths(config)
    heads = config.size("num_attention_heads")
    layer = [
        *layer_norm(d),
        *_attention(config, bias=True, out_bias=True, kv_heads=heads),
        *_two_matrices(d, inner, bias=True),
    ]
    if config.flag("qk_layernorm", default=False):
        layer += layer_norm(d // heads) * 2
    return [
        Parameter("embedding", (vocab, d)),
        *repeated(layer, config.size("num_hidden_layers")),
        *layer_norm(d),
        *_untied_head(config, vocab, d, tied=False),
        Parameter("head", (vocab,)),
    ]


# Llama-like families: RMS norms, grouped heads, a gated MLP.


def llama(config: ModelConfig) -> list[Parameter]:
    """Return Llama: by default, as many key and value heads as query heads."""
    bias = config.flag("attention_bias", default=False)
    heads = config.size("num_attention_heads")
    attention = _attention(config, bias=bias, out_bias=bias, kv_heads=heads)
    return _gated_decoder(
        config, attention, mlp_bias=config.flag("mlp_bias", default=False), tied=False
    )


def mistral(config: ModelConfig) -> list[Parameter]:
    """Return Mistral: no biases."""
    return _gated_decoder(config, _attention(config, bias=False, out_bias=False), tied=False)


def qwen2(config: ModelConfig) -> list[Parameter]:
    """Return Qwen2: biases for queries, keys and values only."""
    return _gated_decoder(config, _attention(config, bias=True, out_bias=False), tied=False)


def qwen3(config: ModelConfig) -> list[Parameter]:
    """Return Qwen3: a norm over each head's queries and keys."""
    return _gated_decoder(config, _normed_attention(config, head_dim=128), tied=False)


def gemma2(config: ModelConfig) -> list[Parameter]:
    """Return Gemma 2: norms before and after both attention and MLP."""
    bias = config.flag("attention_bias", default=False)
    attention = _attention(config, bias=bias, out_bias=bias, head_dim=256)
    return _gated_decoder(config, attention, norms=4, tied=True)


def gemma3(config: ModelConfig) -> list[Parameter]:
    """Return Gemma 3: Gemma 2's four norms, and Qwen3's norms over heads."""
    return _gated_decoder(config, _normed_attention(config, head_dim=256), norms=4, tied=True)


# Mixtures of experts.


def mixtral(config: ModelConfig) -> list[Parameter]:
    """Return Mixtral: a mixture of experts in every layer."""
    layers = config.size("num_hidden_layers")
    mixture = _mixture(config, config.size("intermediate_size"))
    attention = _attention(config, bias=False, out_bias=False)
    return _decoder(config, attention, repeated(mixture, layers), tied=False)


def qwen2_moe(config: ModelConfig) -> list[Parameter]:
    """Return Qwen2-MoE: routed experts, and a shared expert with a gate of its own."""
    d = config.size("hidden_size")
    mixture = [
        *_mixture(config, config.size("moe_intermediate_size")),
        *_gated_mlp(d, config.size("shared_expert_intermediate_size"), bias=False),
        Parameter("router", (1, d)),
    ]
    bias = config.flag("qkv_bias", default=True)
    return _qwen_moe(config, _attention(config, bias=bias, out_bias=False), mixture)


def qwen3_moe(config: ModelConfig) -> list[Parameter]:
    """Return Qwen3-MoE: routed experts only."""
    mixture = _mixture(config, config.size("moe_intermediate_size"))
    return _qwen_moe(config, _normed_attention(config), mixture)


def deepseek_v2(config: ModelConfig) -> list[Parameter]:
    """Return DeepSeek-V2: latent attention; dense layers first, then routed and shared experts."""
    return _deepseek(config, dense_first=0, bias=config.flag("mlp_bias", default=False))


def deepseek_v3(config: ModelConfig) -> list[Parameter]:
    """Return DeepSeek-V3: like V2. The causal model has no multi-token prediction layer."""
    return _deepseek(config, dense_first=3, bias=False)


def _deepseek(config: ModelConfig, dense_first: int, *, bias: bool) -> list[Parameter]:
    d, inner = config.size("hidden_size"), config.size("moe_intermediate_size")
    layers = config.size("num_hidden_layers")
    dense = min(config.size("first_k_dense_replace", default=dense_first, least=0), layers)
    shared = inner * config.size("n_shared_experts")
    mixture = [*_mixture(config, inner), *_gated_mlp(d, shared, bias=bias)]
    mlps = repeated(_gated_mlp(d, config.size("intermediate_size"), bias=bias), dense)
    mlps += repeated(mixture, layers - dense)
    return _decoder(config, _latent_attention(config), mlps, tied=False)


def _qwen_moe(
    config: ModelConfig,
    attention: list[Parameter],
    mixture: list[Parameter],
) -> list[Parameter]:
    """Return a model with a mixture in each `decoder_sparse_step`-th layer.

    The layers in `mlp_only_layers` are excepted.
    """
    d, _, inner = _widths(config)
    layers, step = config.size("num_hidden_layers"), config.size("decoder_sparse_step", default=1)
    named: Any = config.values.get("mlp_only_layers") or []
    if not isinstance(named, list):
        raise ValueError(
            f"{config.source}: expected mlp_only_layers to be a list of layers, but got {named!r}; "
            "correct the entry"
        )
    excepted = {n for n in named if isinstance(n, int) and 0 <= n < layers and (n + 1) % step == 0}
    sparse = layers // step - len(excepted)
    mlps = repeated(mixture, sparse)
    mlps += repeated(_gated_mlp(d, inner, bias=False), layers - sparse)
    return _decoder(config, attention, mlps, tied=False)


# Whole models.


def _gated_decoder(
    config: ModelConfig,
    attention: list[Parameter],
    *,
    tied: bool,
    norms: int = 2,
    mlp_bias: bool = False,
) -> list[Parameter]:
    """Return a model whose layers all have a gated MLP."""
    d, _, inner = _widths(config)
    layers = config.size("num_hidden_layers")
    mlps = repeated(_gated_mlp(d, inner, bias=mlp_bias), layers)
    return _decoder(config, attention, mlps, tied=tied, norms=norms)


def _decoder(
    config: ModelConfig,
    attention: list[Parameter],
    mlps: list[Parameter],
    *,
    tied: bool,
    norms: int = 2,
) -> list[Parameter]:
    """Return a model with RMS norms; `attention` is one layer's, `mlps` are all layers'."""
    d, vocab = config.size("hidden_size"), config.size("vocab_size")
    layer = [*[Parameter("norm", (d,))] * norms, *attention]
    return [
        Parameter("embedding", (vocab, d)),
        *repeated(layer, config.size("num_hidden_layers")),
        *mlps,
        Parameter("norm", (d,)),
        *_untied_head(config, vocab, d, tied=tied),
    ]


def _untied_head(config: ModelConfig, vocab: int, d: int, *, tied: bool) -> list[Parameter]:
    """Return the head; empty if it is tied to the embedding. `tied` is the family's default."""
    is_tied = config.flag("tie_word_embeddings", default=tied)
    return [] if is_tied else [Parameter("head", (vocab, d))]


# Parts of a layer.


def _widths(config: ModelConfig) -> tuple[int, int, int]:
    """Return the hidden size, the vocabulary and the inner width of the MLP."""
    d, vocab = config.size("hidden_size"), config.size("vocab_size")
    return d, vocab, config.size("intermediate_size")


def _attention(
    config: ModelConfig,
    *,
    bias: bool,
    out_bias: bool,
    head_dim: int | None = None,
    kv_heads: int | None = None,
) -> list[Parameter]:
    """Return the matrices of queries, keys and values, and the output matrix.

    `head_dim` and `kv_heads` are the family's defaults. Without them, heads share d equally, and
    the config must have the number of key and value heads.
    """
    d, heads = config.size("hidden_size"), config.size("num_attention_heads")
    width = config.size("head_dim", default=head_dim or d // heads)
    shared = config.size("num_key_value_heads", default=kv_heads) * width
    return [
        *linear("attention", heads * width, d, bias=bias),
        *linear("attention", shared, d, bias=bias),
        *linear("attention", shared, d, bias=bias),
        *linear("attention", d, heads * width, bias=out_bias),
    ]


def _normed_attention(config: ModelConfig, head_dim: int | None = None) -> list[Parameter]:
    """Return an attention that normalizes each head's queries and keys."""
    bias = config.flag("attention_bias", default=False)
    found = _attention(config, bias=bias, out_bias=bias, head_dim=head_dim)
    equal = config.size("hidden_size") // config.size("num_attention_heads")
    width = config.size("head_dim", default=head_dim or equal)
    return [*found, Parameter("norm", (width,)), Parameter("norm", (width,))]


def _latent_attention(config: ModelConfig) -> list[Parameter]:
    """Return attention over compressed keys and values (MLA, DeepSeek-V2, section 2.1).

    Queries are compressed too, unless q_lora_rank is null.
    """
    d, heads = config.size("hidden_size"), config.size("num_attention_heads")
    bias = config.flag("attention_bias", default=False)
    plain, rotated, value, latent = map(
        config.size, ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")
    )
    queries = heads * (plain + rotated)
    if "q_lora_rank" in config.values and config.values["q_lora_rank"] is None:
        found = linear("attention", queries, d, bias=False)
    else:
        rank = config.size("q_lora_rank")
        found = [
            *linear("attention", rank, d, bias=bias),
            Parameter("norm", (rank,)),
            *linear("attention", queries, rank, bias=False),
        ]
    return [
        *found,
        *linear("attention", latent + rotated, d, bias=bias),
        Parameter("norm", (latent,)),
        *linear("attention", heads * (plain + value), latent, bias=False),
        *linear("attention", d, heads * value, bias=bias),
    ]


def _two_matrices(d: int, inner: int, *, bias: bool) -> list[Parameter]:
    return [*linear("mlp", inner, d, bias=bias), *linear("mlp", d, inner, bias=bias)]


def _gated_mlp(d: int, inner: int, *, bias: bool) -> list[Parameter]:
    return [*linear("mlp", inner, d, bias=bias), *_two_matrices(d, inner, bias=bias)]


def _mixture(config: ModelConfig, inner: int) -> list[Parameter]:
    """Return a router and its experts, each a gated MLP, stacked as (E, 2 inner, d)."""
    d = config.size("hidden_size")
    experts = config.size("num_experts", "num_local_experts", "n_routed_experts")
    used = config.size("num_experts_per_tok")
    if used > experts:
        raise ValueError(
            f"{config.source}: a token cannot use num_experts_per_tok={used} of {experts} experts; "
            f"expected at most {experts}, correct the entry"
        )
    return [
        Parameter("router", (experts, d)),
        Parameter("experts", (experts, 2 * inner, d), used=used),
        Parameter("experts", (experts, d, inner), used=used),
    ]
