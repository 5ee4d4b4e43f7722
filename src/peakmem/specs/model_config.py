"""Hugging Face configs on disk: find one, read it, and look up its sizes, without a network."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ModelConfig", "read_config"]

_FILE = "config.json"
# A model's name, with or without an organization's, as the hub allows them.
_MODEL_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


@dataclass(frozen=True)
class ModelConfig:
    """The content of a config.json, and its path.

    >>> config = ModelConfig("config.json", {"model_type": "gpt2", "n_layer": 12})
    >>> config.size("num_hidden_layers", "n_layer")
    12
    """

    #: The file's path, for messages.
    source: str
    #: The entries of the file.
    values: Mapping[str, Any]

    @property
    def model_type(self) -> str:
        """The family, such as "llama". Raises ValueError if the config has none."""
        found = self.values.get("model_type")
        if not isinstance(found, str) or not found:
            raise ValueError(
                f"{self.source} has no model_type, but expected one such as 'llama'; "
                "give the config.json of a model, not of its tokenizer or its generation"
            )
        return found

    @property
    def class_name(self) -> str | None:
        """The class that saved the weights; None if the config names none."""
        names = self.values.get("architectures")
        if isinstance(names, list) and names and isinstance(names[0], str):
            return names[0]
        return None

    def size(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """Return the first of these entries that is present and not null, or the default.

        Raises ValueError, naming the entry, if it isn't a whole number of at least `least`, or if
        it is missing and there is no default.
        """
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(
                    f"{self.source}: expected {name} to be a whole number of at least {least}, "
                    f"but got {value!r}; correct the entry"
                )
            return value
        if default is None:
            raise ValueError(
                f"{self.source} has no {' or '.join(names)}, which the parameters of a "
                f"{self.model_type} depend on; add it as a whole number"
            )
        return default

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean entry, or the default. Raises ValueError for any other value."""
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise ValueError(
                f"{self.source}: expected {name} to be true or false, but got {value!r}; "
                "correct the entry"
            )
        return value


def read_config(given: str) -> ModelConfig:
    """Read a config: a file, the config.json of a folder, or a model id in the local cache.

    The cache is Hugging Face's: HF_HUB_CACHE or HF_HOME name it, else ~/.cache/huggingface. Raises
    ValueError, with the remedy, if there is no such file or it isn't a JSON object.
    """
    path = _find(given)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # not JSON, or not UTF-8
        raise ValueError(
            f"{path} is not JSON ({error}), but expected a Hugging Face config.json; "
            "give the file as the model's authors published it"
        ) from None
    except OSError as error:
        raise ValueError(f"{path} can't be read: {error.strerror}; check its permissions") from None
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} holds a JSON {type(values).__name__}, but expected an object such as "
            '{"model_type": "llama", ...}; give the config.json of a model'
        )
    return ModelConfig(str(path), values)


def _find(given: str) -> Path:
    path = Path(given).expanduser()
    if path.is_dir():
        if not (path / _FILE).is_file():
            raise ValueError(
                f"the folder {given} has no {_FILE}; give a folder that a model was saved to, "
                "or the file itself"
            )
        return path / _FILE
    if path.exists():
        return path
    if given.endswith(".json") or not _MODEL_ID.fullmatch(given):
        raise ValueError(
            f"no such file: {given}; expected a {_FILE}, a folder that holds one, or a model id "
            "such as Qwen/Qwen3-8B"
        )
    return _cached(given)


def _cached(model_id: str) -> Path:
    cache = _cache_folder()
    repository = cache / f"models--{model_id.replace('/', '--')}"
    try:
        commit = (repository / "refs/main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        commit = ""
    path = repository / "snapshots" / commit / _FILE
    if not commit or not path.is_file():
        raise ValueError(
            f"{model_id!r} is not a file or a folder, and the local cache {cache} has no config of "
            f"that model id; run `hf download {model_id} {_FILE}` on a machine with a network, or "
            "give the file"
        )
    return path


def _cache_folder() -> Path:
    named = os.environ.get("HF_HUB_CACHE")
    if named:
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{base}/huggingface"
    return Path(home).expanduser() / "hub"
