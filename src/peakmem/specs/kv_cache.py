"""A decoder's KV cache, layer by layer, from its config.

Key and value heads that query heads share (GQA, MQA) count once. Latent attention (MLA) caches one
compressed vector for each token and the rotary part of the key (DeepSeek-V2, section 2.1), as vLLM
and transformers 5.23 do. A layer with a sliding window caches at most a window of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from peakmem.specs.model_config import ModelConfig
from peakmem.specs.models import ModelShape

__all__ = ["CacheLayer", "cache_layers", "cache_of_shape"]

# Families that configure heads as Llama does -> the default size of a head (None: equal shares).
_HEAD_DIM = {
    "phi": None,
    "llama": None,
    "mistral": None,
    "mixtral": None,
    "qwen2": None,
    "qwen2_moe": None,
    "qwen3": 128,
    "qwen3_moe": None,
    "gemma2": 256,
    "gemma3_text": 256,
}
# One in this many layers attends to all tokens; the others have a window.
_PATTERN = {"gemma2": 2, "gemma3_text": 6}
_WINDOW = "sliding_attention"
_HEADS = "num_attention_heads"


@dataclass(frozen=True)
class CacheLayer:
    """One layer's keys and values."""

    #: Elements that one token adds, keys and values together.
    elements: int
    #: Heads that devices can share; 1 if there is nothing to share.
    heads: int
    #: The most tokens in the cache; None for all.
    window: int | None = None

    def elements_of(self, tokens: int, devices: int = 1) -> int:
        """Return the elements of one sequence on one of `devices` that share the heads.

        If there are more devices than heads, some devices hold the same heads.

        >>> CacheLayer(elements=2048, heads=8, window=4096).elements_of(8192, devices=2)
        4194304
        """
        kept = tokens if self.window is None else min(tokens, self.window)
        heads = -(-self.heads // devices)
        return kept * self.elements // self.heads * heads


def cache_of_shape(shape: ModelShape) -> list[CacheLayer]:
    """Return the cache's layers for a model that is given by its sizes."""
    layer = CacheLayer(2 * shape.key_value_width, shape.key_value_heads)
    return [layer] * shape.n_layers


def cache_layers(config: ModelConfig) -> list[CacheLayer]:
    """Return the cache's layers for a model. Raises ValueError if its family is unknown.

    >>> sizes = dict(num_hidden_layers=2, hidden_size=64, num_attention_heads=8)
    >>> values = {"model_type": "llama", "num_key_value_heads": 2, **sizes}
    >>> cache_layers(ModelConfig("config.json", values))[0].elements
    32
    """
    kind = config.model_type
    if kind in ("gpt2", "gpt_neox", "opt"):
        d, heads = config.size("n_embd", "hidden_size"), config.size("n_head", _HEADS)
        return [CacheLayer(2 * d, heads)] * config.size("n_layer", "num_hidden_layers")
    if kind in ("deepseek_v2", "deepseek_v3"):
        latent = config.size("kv_lora_rank") + config.size("qk_rope_head_dim")
        return [CacheLayer(latent, 1)] * config.size("num_hidden_layers")
    if kind not in _HEAD_DIM:
        raise ValueError(
            f"{config.source}: peakmem doesn't know the KV cache of a {kind}; expected a decoder "
            f"such as {', '.join(sorted(_HEAD_DIM))}, so leave out --inference"
        )
    queries = config.size(_HEADS)
    heads = config.size("num_key_value_heads", default=queries)
    equal = config.size("hidden_size") // queries
    width = config.size("head_dim", default=_HEAD_DIM[kind] or equal)
    return [CacheLayer(2 * heads * width, heads, window) for window in _windows(config)]


def _windows(config: ModelConfig) -> list[int | None]:
    """Return each layer's window; None for a layer without one."""
    kind, layers = config.model_type, config.size("num_hidden_layers")
    kinds = config.values.get("layer_types")
    if isinstance(kinds, list):
        if len(kinds) != layers:
            raise ValueError(
                f"{config.source}: layer_types has {len(kinds)} entries, but expected {layers}, "
                "one for each layer; correct the entry"
            )
        slides = [name == _WINDOW for name in kinds]
    elif kind in _PATTERN:
        slides = [bool((layer + 1) % _PATTERN[kind]) for layer in range(layers)]
    elif kind in ("mistral", "mixtral"):
        default = 4096 if kind == "mistral" else None
        slides = [config.values.get("sliding_window", default) is not None] * layers
    else:
        slides = [False] * layers  # Qwen's windows are off unless its layer_types say otherwise
    window = config.size("sliding_window", default=4096) if any(slides) else None
    return [window if slide else None for slide in slides]
