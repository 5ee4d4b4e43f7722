"""The parameters of any model that transformers can build, counted on torch's meta device."""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any

import torch

from peakmem.specs.model_config import ModelConfig
from peakmem.specs.parameter_table import Group, Parameter, ParameterTable

__all__ = ["built_class", "built_parameters"]

# The group of a parameter, by the names of the classes that it lies in, the first match deciding.
# Transformers has no other mark of what a module is for.
_GROUPS: tuple[tuple[Group, re.Pattern[str]], ...] = (
    ("norm", re.compile(r"Norm(\d?d)?$")),
    ("experts", re.compile("Experts$")),
    ("router", re.compile("Router$")),
    ("attention", re.compile("Attention")),
    (
        "mlp",
        re.compile("MLP|FeedForward|FFN|DenseActDense|DenseGatedActDense|Intermediate$|Output$"),
    ),
    ("embedding", re.compile("Embedding")),
)
# Tried in this order where a config names no class. A causal class comes late: models with an
# encoder have one too, without the encoder.
_AUTO_CLASSES = (
    "AutoModelForSeq2SeqLM",
    "AutoModelForSpeechSeq2Seq",
    "AutoModelForMaskedLM",
    "AutoModelForCausalLM",
    "AutoModel",
)


def built_class(config: ModelConfig) -> tuple[Any, Any]:
    """Return the config's class in transformers, and the config as that class takes it.

    Raises ValueError if transformers is not installed, does not know the model_type, or refuses
    the config. Code that a model brings along is never run.
    """
    kind = config.model_type
    transformers = _transformers(config)
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if kind not in known:
        raise ValueError(
            f"{config.source}: model_type {kind!r} is unknown to transformers "
            f"{transformers.__version__}; correct it, or install a version that has it"
        )
    try:
        settings = known[kind].from_dict(dict(config.values))
        return _class_of(transformers, config, settings), settings
    except Exception as error:  # whatever a model's class raises for a config that it can't take
        raise _refused(config, error) from error


def _refused(config: ModelConfig, error: Exception) -> ValueError:
    reason = next(filter(None, str(error).splitlines()), type(error).__name__).strip()
    return ValueError(
        f"{config.source}: transformers {_transformers(config).__version__} can't build this "
        f"{config.model_type} ({reason}); correct the config, or install what is named"
    )


def built_parameters(config: ModelConfig) -> ParameterTable:
    """Build the config's class without memory for its weights, and list its parameters.

    Raises ValueError where `built_class` does.
    """
    family, settings = built_class(config)
    try:
        with torch.device("meta"):
            model = family._from_config(settings)
    except Exception as error:
        raise _refused(config, error) from error
    groups = _groups(model)
    found = tuple(Parameter(groups[name], tuple(p.shape)) for name, p in model.named_parameters())
    # Every mixture has an entry for its number of experts; which of its tensors are experts, and
    # how many a token uses, each class knows by itself.
    is_dense = "expert" not in str(settings)
    return ParameterTable(config.model_type, type(model).__name__, found, knows_active=is_dense)


def _transformers(config: ModelConfig) -> Any:
    # Some classes fetch a backbone's weights or config by name; offline they raise instead. The
    # variable is read when transformers is imported.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        return import_module("transformers")  # an optional package
    except ImportError:
        raise ValueError(
            f"{config.source}: a {config.class_name or config.model_type} is not read directly, "
            "and transformers, which could build it, is not installed; "
            "run `pip install transformers`"
        ) from None


def _class_of(transformers: Any, config: ModelConfig, settings: Any) -> Any:
    """Return the class that the config names; without one, the first that fits."""
    named = getattr(transformers, config.class_name, None) if config.class_name else None
    if isinstance(named, type) and issubclass(named, transformers.PreTrainedModel):
        return named
    for name in _AUTO_CLASSES:
        mapping = getattr(transformers, name)._model_mapping
        if type(settings) in mapping:
            found = mapping[type(settings)]
            return found[0] if isinstance(found, tuple) else found
    raise ValueError("it has no model class")


def _groups(model: Any) -> dict[str, Group]:
    """Return each parameter's group; what lies outside of the base model is the head."""
    classes = {name: type(module).__name__ for name, module in model.named_modules()}
    base = {id(p) for p in model.base_model.parameters()}
    found: dict[str, Group] = {}
    for name, parameter in model.named_parameters():
        parts = name.split(".")[:-1]
        around = [classes[".".join(parts[: n + 1])] for n in range(len(parts))]
        group = _group_by_class(around)
        is_head = id(parameter) not in base and group != "norm"
        found[name] = "head" if is_head else group
    return found


def _group_by_class(around: list[str]) -> Group:
    """Return the group that class names tell, from the model's to the innermost module's."""
    for group, pattern in _GROUPS:
        # A norm is one itself; all else may be a plain linear layer inside an attention.
        if any(map(pattern.search, around[-1:] if group == "norm" else around)):
            return group
    return "other"
