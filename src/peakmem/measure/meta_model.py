"""Parameters of any model that transformers can build, counted on torch's meta device."""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch

from peakmem.specs.model_config import ModelConfig
from peakmem.specs.parameter_table import Group, Parameter, ParameterTable

__all__ = ["built_class", "built_parameters"]

# A parameter's group follows from the names of the classes around it; the first match decides.
# transformers has no other mark of a module's purpose.
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
# The order of attempts if a config names no class. A causal class comes late, because models with
# an encoder have one too, without the encoder.
_AUTO_CLASSES = (
    "AutoModelForSeq2SeqLM",
    "AutoModelForSpeechSeq2Seq",
    "AutoModelForMaskedLM",
    "AutoModelForCausalLM",
    "AutoModel",
)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Hide what libraries log and warn of on import; none of it is about the model."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


@_without_warnings()
def built_class(config: ModelConfig) -> tuple[Any, Any]:
    """Return the config's class in transformers, and the config as an object for that class.

    Raises ValueError if transformers isn't installed, doesn't know the model_type, or refuses the
    config. Never runs code that comes with a model.
    """
    kind = config.model_type
    transformers = _transformers(config)
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if kind not in known:
        raise ValueError(
            f"{config.source}: transformers {transformers.__version__} doesn't know model_type "
            f"{kind!r}; correct it, or install a version that does"
        )
    try:
        settings = known[kind].from_dict(dict(config.values))
        return _class_of(transformers, config, settings), settings
    except Exception as error:  # a model's class may raise anything for an invalid config
        raise _refused(config, error) from error


def _refused(config: ModelConfig, error: Exception) -> ValueError:
    reason = next(filter(None, str(error).splitlines()), type(error).__name__).strip()
    return ValueError(
        f"{config.source}: transformers {_transformers(config).__version__} can't build this "
        f"{config.model_type} ({reason}); correct the config, or install the missing package"
    )


def built_parameters(config: ModelConfig) -> ParameterTable:
    """Return the parameters of the config's class, built without memory for its weights.

    Raises ValueError as `built_class` does.
    """
    family, settings = built_class(config)
    try:
        with torch.device("meta"):
            model = family._from_config(settings)
    except Exception as error:
        raise _refused(config, error) from error
    groups = _groups(model)
    found = tuple(Parameter(groups[name], tuple(p.shape)) for name, p in model.named_parameters())
    # Every mixture has a config entry for its number of experts. Only its class knows which tensors
    # are experts, and how many of them a token uses.
    is_dense = "expert" not in str(settings)
    return ParameterTable(config.model_type, type(model).__name__, found, knows_active=is_dense)


def _transformers(config: ModelConfig) -> Any:
    # Some classes fetch a backbone's weights or config by name; offline, they raise instead.
    # transformers reads the variable when it is imported.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        return import_module("transformers")  # an optional package
    except ImportError:
        raise ValueError(
            f"{config.source}: peakmem can't read a {config.class_name or config.model_type} by "
            "itself, and transformers, which could build it, isn't installed; run `pip install "
            "transformers`"
        ) from None


def _class_of(transformers: Any, config: ModelConfig, settings: Any) -> Any:
    """Return the class that the config names, or else the first that fits."""
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
    """Return each parameter's group; parameters outside the base model are the head."""
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
    """Return the group that follows from class names, from the model's to the innermost."""
    for group, pattern in _GROUPS:
        # For a norm, the innermost class decides; other groups contain plain linear layers.
        if any(map(pattern.search, around[-1:] if group == "norm" else around)):
            return group
    return "other"
