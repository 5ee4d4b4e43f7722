"""Models built without memory: against the families that are read directly, and real models."""

from __future__ import annotations

import importlib
import logging
import warnings
from typing import Any

import pytest

from peakmem.measure import meta_model
from peakmem.measure.meta_model import built_parameters
from peakmem.specs.families import read_parameters
from peakmem.specs.model_config import ModelConfig
from tests.peakmem.specs.configs import SMALL

pytestmark = pytest.mark.filterwarnings("ignore")
MAMBA = {
    "model_type": "mamba",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "vocab_size": 90,
    "state_size": 4,
}


@pytest.mark.filterwarnings("error")
def test_what_libraries_say_as_they_are_imported_is_hidden(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def loud(*_: object) -> object:
        logging.getLogger("torchao").warning("no kernels for this machine")
        warnings.warn("deprecated", stacklevel=1)
        return object

    monkeypatch.setattr(meta_model, "_class_of", loud)
    found, _ = meta_model.built_class(config(MAMBA))
    assert found is object
    assert caplog.messages == []
    logging.getLogger("torchao").warning("later")
    assert caplog.messages == ["later"]


def config(values: dict[str, Any]) -> ModelConfig:
    return ModelConfig("config.json", values)


@pytest.mark.parametrize(
    "name",
    [
        "gpt2, wide and untied",
        "llama with biases",
        "qwen3_moe, some layers dense",
        "gemma3 without head_dim",
        "deepseek_v2 with biases",
        "vit, oblong",
        "bert, untied",
        "t5, unequal stacks",
    ],
)
def test_a_family_that_is_read_is_built_alike(name: str) -> None:
    pytest.importorskip("transformers")
    values = SMALL[name]
    read = read_parameters(config(values))
    class_name = read.class_name if read else ""
    built = built_parameters(config(values | {"architectures": [class_name]}))
    assert read is not None
    assert built.by_group() == read.by_group()
    assert built.class_name == class_name
    assert built.active in (None, read.active)


def test_other_classes_are_those_that_the_config_names() -> None:
    pytest.importorskip("transformers")
    plain = built_parameters(config(MAMBA))
    assert plain.class_name == "MambaForCausalLM"
    assert plain.active == plain.total == sum(plain.by_group().values())
    classifier = SMALL["bert, untied"] | {"architectures": ["BertForSequenceClassification"]}
    table = built_parameters(config(classifier | {"num_labels": 5}))
    assert table.class_name == "BertForSequenceClassification"
    assert table.by_group()["head"] == 5 * 32 + 5


@pytest.mark.parametrize(
    ("model_type", "class_name"),
    [("whisper", "WhisperForConditionalGeneration"), ("roberta", "RobertaForMaskedLM")],
)
def test_a_model_with_an_encoder_is_built_with_it(model_type: str, class_name: str) -> None:
    pytest.importorskip("transformers")
    assert built_parameters(config({"model_type": model_type})).class_name == class_name


def test_a_class_that_is_no_model_is_not_called() -> None:
    pytest.importorskip("transformers")
    for name in ("pipeline", "AutoTokenizer", "logging", "NoSuchClass"):
        table = built_parameters(config(MAMBA | {"architectures": [name]}))
        assert table.class_name == "MambaForCausalLM"


def test_a_mixture_does_not_claim_to_know_its_active_parameters() -> None:
    pytest.importorskip("transformers")
    table = built_parameters(config(SMALL["mixtral, tied"]))
    assert table.by_group()["experts"]
    assert table.active is None


def test_an_unknown_model_type() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="doesn't know model_type 'lama'"):
        built_parameters(config({"model_type": "lama"}))


def test_a_config_that_transformers_refuses() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="can't build this mamba"):
        built_parameters(config(MAMBA | {"hidden_size": "wide"}))


def test_without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(meta_model, "import_module", missing)
    assert importlib.import_module is not missing
    with pytest.raises(ValueError, match="isn't installed; run `pip install transformers`"):
        built_parameters(config(MAMBA))
