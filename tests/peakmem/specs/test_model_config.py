"""Where a config is found, and the message if there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from peakmem.specs.model_config import ModelConfig, read_config

CONFIG = {"model_type": "llama", "hidden_size": 32}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, which the variable HF_HUB_CACHE names."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("HF_HUB_CACHE", str(folder))
    return folder


def cached(cache: Path, model_id: str, commit: str = "abc") -> None:
    repository = cache / f"models--{model_id.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs/main").write_text(commit)
    (repository / f"snapshots/{commit}").mkdir(parents=True)
    (repository / f"snapshots/{commit}/config.json").write_text(json.dumps(CONFIG))


def test_a_file_a_folder_and_an_id(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    cached(cache, "some-org/Some.Model-1B")
    cached(cache, "gpt2")
    for given in (str(tmp_path / "config.json"), str(tmp_path), "some-org/Some.Model-1B", "gpt2"):
        config = read_config(given)
        assert config.values == CONFIG
        assert config.source.endswith("config.json")


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"HF_HOME": "{}/home"}, "home/hub"),
        ({"XDG_CACHE_HOME": "{}/xdg"}, "xdg/huggingface/hub"),
        ({"HOME": "{}/user"}, "user/.cache/huggingface/hub"),
        ({"HF_HUB_CACHE": "{}/hub", "HF_HOME": "{}/home"}, "hub"),
    ],
    ids=str,
)
def test_the_cache_is_where_hugging_face_has_it(
    variables: dict[str, str], place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    cached(tmp_path / place, "org/model")
    assert read_config("org/model").values == CONFIG


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{model_type: llama}", "is not JSON"),
        (b"", "is not JSON"),
        (b"\xff\xfe\x00", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[1]", "holds a JSON list, but expected an object"),
    ],
    ids=["not quoted", "empty", "not UTF-8", "deep", "list"],
)
def test_a_file_that_is_no_config(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=says) as caught:
        read_config(str(file))
    assert str(file) in str(caught.value)
    assert "give the" in str(caught.value)


@pytest.mark.parametrize("given", ["missing.json", "/no/such/folder", "a/b/c", "a b"])
def test_a_file_that_is_not_there(given: str, cache: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        read_config(given)


def test_a_folder_without_a_config(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no config\.json; give a folder"):
        read_config(str(tmp_path))


@pytest.mark.parametrize("commit", [None, "", "other"])
def test_an_id_that_is_not_in_the_cache(commit: str | None, cache: Path) -> None:
    """Nothing of it, a reference to nothing, and a reference to another commit than there is."""
    if commit is not None:
        cached(cache, "org/model")
        (cache / "models--org--model/refs/main").write_text(commit)
    with pytest.raises(ValueError, match="no config of that model id; run `hf download") as caught:
        read_config("org/model")
    assert str(cache) in str(caught.value)


@pytest.mark.parametrize("values", [{}, {"model_type": 3}, {"model_type": ""}], ids=str)
def test_no_model_type(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"config\.json has no model_type, but expected one"):
        _ = ModelConfig("config.json", values).model_type


def test_the_class_is_the_first_that_the_config_names() -> None:
    named = ModelConfig("config.json", {"architectures": ["A", "B"]})
    assert named.class_name == "A"
    for other in ({}, {"architectures": None}, {"architectures": []}, {"architectures": [3]}):
        assert ModelConfig("config.json", other).class_name is None
