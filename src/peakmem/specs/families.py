"""Which model families are read from a config alone, and the parameters of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from peakmem.specs import decoder_families as decoders
from peakmem.specs import encoder_families as encoders
from peakmem.specs.model_config import ModelConfig
from peakmem.specs.parameter_table import Parameter, ParameterTable

__all__ = ["FAMILIES", "read_parameters"]

#: By model_type: the class of transformers that is read, and the function that lists its
#: parameters.
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
    """Return the parameters of a family that is known here; None for any other class.

    A known family under another class, such as a classifier, is not known, nor is one with
    cross-attention. Raises ValueError, with the entry's name, where the config lacks a size.

    >>> sizes = dict(n_layer=12, n_embd=768, n_head=12, n_positions=1024, vocab_size=50257)
    >>> read_parameters(ModelConfig("config.json", {"model_type": "gpt2", **sizes})).total
    124439808
    """
    class_name, parameters_of = FAMILIES.get(config.model_type, ("", None))
    is_other = config.class_name not in (None, class_name)
    if parameters_of is None or is_other or config.flag("add_cross_attention", default=False):
        return None
    return ParameterTable(config.model_type, class_name, tuple(parameters_of(config)))
