"""Model families whose parameters follow from a Hugging Face config alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from peakmem.specs import decoder_families as decoders
from peakmem.specs import encoder_families as encoders
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.models import Activation, ModelShape
from peakmem.specs.parameter_table import Parameter, ParameterTable

__all__ = ["FAMILIES", "read_parameters", "step_shape"]

#: model_type -> the class in transformers, and the function that lists its parameters.
FAMILIES: Mapping[str, tuple[str, Callable[[ModelConfig], list[Parameter]]]] = MappingProxyType(
    {
        "gpt2": ("GPT2LMHeadModel", decoders.gpt2),
        "gpt_neox": ("GPTNeoXForCausalLM", decoders.gpt_neox),
        "opt": ("OPTForCausalLM", decoders.opt),
        "phi": ("PhiForCausalLM", decoders.phi),
        "llama": ("LlamaForCausalLM", decoders.llama),
        "mistral": ("MistralForCausalLM", decoders.mistral),
        "mixtral": ("MixtralForCausalLM", decoders.mixtral),
        "qwen2": ("Qwen2ForCausalLM", decoders.qwen2),
        "qwen2_moe": ("Qwen2MoeForCausalLM", decoders.qwen2_moe),
        "qwen3": ("Qwen3ForCausalLM", decoders.qwen3),
        "qwen3_moe": ("Qwen3MoeForCausalLM", decoders.qwen3_moe),
        "gemma2": ("Gemma2ForCausalLM", decoders.gemma2),
        "gemma3_text": ("Gemma3ForCausalLM", decoders.gemma3),
        "deepseek_v2": ("DeepseekV2ForCausalLM", decoders.deepseek_v2),
        "deepseek_v3": ("DeepseekV3ForCausalLM", decoders.deepseek_v3),
        "bert": ("BertForMaskedLM", encoders.bert),
        "t5": ("T5ForConditionalGeneration", encoders.t5),
        "vit": ("ViTForImageClassification", encoders.vit),
    }
)


def read_parameters(config: ModelConfig) -> ParameterTable | None:
    """Return the parameters of a model of a known family; None for any other model.

    A known family with another class (a classifier, say) or with cross-attention counts as unknown.
    Raises ValueError, naming the entry, if the config lacks a size.

    >>> sizes = dict(n_layer=12, n_embd=768, n_head=12, n_positions=1024, vocab_size=50257)
    >>> read_parameters(ModelConfig("config.json", {"model_type": "gpt2", **sizes})).total
    124439808
    """
    class_name, parameters_of = FAMILIES.get(config.model_type, ("", None))
    is_other = config.class_name not in (None, class_name)
    if parameters_of is None or is_other or config.flag("add_cross_attention", default=False):
        return None
    return ParameterTable(config.model_type, class_name, tuple(parameters_of(config)))


def step_shape(config: ModelConfig, name: str, sequence: int) -> ModelShape | None:
    """Return the config as a shape that `predict` has rules for; None for any other model.

    There are rules for GPT-2 with a GELU, and for Llama and Mistral without biases, with SiLU and
    without dropout. A sliding window must be longer than the sequence: a shorter one needs a mask,
    which the rules leave out. GPT-2's dropout comes from the recipe, not from the config.
    """
    if read_parameters(config) is None:
        return None
    if config.model_type == "gpt2":
        return _gpt2_shape(config, name)
    if config.model_type in ("llama", "mistral"):
        return _llama_shape(config, name, sequence)
    return None


# The exact GELU and its tanh approximation: either is one operator, and saves its input.
_GELUS: Mapping[str, Activation] = MappingProxyType(
    {"gelu_new": "gelu_new", "gelu": "gelu", "gelu_pytorch_tanh": "gelu"}
)


def _gpt2_shape(config: ModelConfig, name: str) -> ModelShape | None:
    activation = _GELUS.get(config.values.get("activation_function", "gelu_new"))
    if activation is None:
        return None
    d = config.size("n_embd", "hidden_size")
    return ModelShape(
        name,
        n_layers=config.size("n_layer", "num_hidden_layers"),
        d_model=d,
        n_heads=config.size("n_head", "num_attention_heads"),
        vocab=config.size("vocab_size"),
        context=config.size("n_positions", "max_position_embeddings"),
        d_ff=config.size("n_inner", default=4 * d),
        activation=activation,
        hugging_face=True,
        tied=config.flag("tie_word_embeddings", default=True),
        source=config.source,
    )


def _llama_shape(config: ModelConfig, name: str, sequence: int) -> ModelShape | None:
    values = config.values
    if any(config.flag(bias, default=False) for bias in ("attention_bias", "mlp_bias")):
        return None
    if values.get("hidden_act", "silu") != "silu" or values.get("attention_dropout"):
        return None
    has_window = config.model_type == "mistral" and values.get("sliding_window", 0) is not None
    if has_window and config.size("sliding_window", default=4096) <= sequence:
        return None
    d, heads = config.size("hidden_size"), config.size("num_attention_heads")
    return ModelShape(
        name,
        n_layers=config.size("num_hidden_layers"),
        d_model=d,
        n_heads=heads,
        vocab=config.size("vocab_size"),
        context=config.size("max_position_embeddings", default=sequence),
        kv_heads=config.size("num_key_value_heads", default=heads),
        d_head=config.size("head_dim", default=d // heads),
        d_ff=config.size("intermediate_size"),
        gated=True,
        biases=False,
        learned_positions=False,
        tied=config.flag("tie_word_embeddings", default=False),
        source=config.source,
    )
