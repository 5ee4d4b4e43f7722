"""The calculators of pipelines, ZeRO and scaling laws beside the papers' figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from peakmem.scale.pipelines import schedule
from peakmem.scale.scaling_laws import APPROACHES
from peakmem.show.widgets import pipelines, scaling, zero
from peakmem.show.widgets.scaling import LAWS
from peakmem.specs.hardware import ACCELERATORS

REPOSITORY = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "varuna"])
def test_the_table_is_the_schedules(name: str) -> None:
    calculator = pipelines()
    calculator.set(name=name, stages=4, micro_batches=5)
    found = schedule(name, 4, 5)
    assert f">{found.slots}</td>" in calculator._text.value
    assert f"{found.bubble_fraction:.1%}" in calculator._text.value
    assert calculator._picture.value.count("<title>stage ") == len(found.operations)


def test_lecture_2_asks_for_a_bubble_that_the_slider_reaches_but_does_not_begin_with() -> None:
    lecture = (REPOSITORY / "lectures/lecture2_speed.ipynb").read_text("utf-8")
    asked = (
        "With 4 stages under GPipe, how many micro-batches make the bubble smaller than an eighth?"
    )
    assert asked in lecture
    calculator = pipelines()
    assert (calculator.name, calculator.stages) == ("gpipe", 4)
    most = calculator._controls["micro_batches"].max
    bubbles = {m: _bubble(calculator, m) for m in range(1, most + 1)}
    enough = [m for m, bubble in bubbles.items() if bubble < 1 / 8]
    assert enough
    assert min(enough) > calculator._first["micro_batches"] + 3


def test_the_bibliography_gives_the_bubble_with_and_without_recomputation() -> None:
    calculator = pipelines()
    shares = (schedule("gpipe", 4, 5, recompute=False).bubble_fraction, _bubble(calculator, 5))
    assert calculator.micro_batches == 5
    text = (REPOSITORY / "docs/bibliography.md").read_text("utf-8")
    first, second = (f"{share:.1%}" for share in shares)
    assert f"{first} for $p = 4$ and $m = 5$; {second} in GPipe with recomputation" in text


def _bubble(calculator: Any, micro_batches: int) -> float:
    calculator.micro_batches = micro_batches
    percent, _ = calculator.answer().figure
    return float(percent) / 100


def test_varuna_without_recomputation_is_a_sentence() -> None:
    calculator = pipelines()
    calculator.set(name="varuna", recompute=False)
    assert "Varuna always recomputes" in calculator.message


def test_zero_on_1024_devices() -> None:
    calculator = zero()
    calculator.set(model="gpt3-175b", doublings=10)
    parameters = 174_604_259_328
    figure = calculator.answer().figure
    assert figure is not None
    assert figure[0] == pytest.approx(16 * parameters / 1024 / 1e9)
    assert calculator._text.value.count("does not fit") == 3


def test_zero_shows_what_real_processes_held_beside_its_prediction(repository: Path) -> None:
    recorded = json.loads((repository / "docs/measurements/shards.json").read_text("utf-8"))
    shown = re.findall(r">([\d.]+ / [\d.]+)<", zero()._picture.value)
    assert shown == [
        f"{row['predicted_mib']:.2f} / {row['metered_mib']:.2f}" for row in recorded["stages"]
    ]


def test_days_of_gpt3_on_1024_a100s() -> None:
    calculator = scaling()
    flops = 8 * 175e9 * 300e9  # forward twice, as Narayanan et al. trained it
    calculator.set(flops=flops, devices=1024, utilisation=45)
    figure = calculator.answer().figure
    assert figure == (pytest.approx(34, abs=0.5), "days")
    assert f"{figure[0]:,.1f} days" in calculator._text.value


def test_energy_says_what_it_adds_to_the_gpus() -> None:
    calculator = scaling()
    calculator.set(devices=1000, watts=400, utilisation=45)
    figure = calculator.answer().figure
    assert figure is not None
    of_gpus = figure[0] * 24 * 1000 * 400 / 1e6  # MWh
    row = re.search(
        r">energy, 10% more for the site</t[dh]>.*?>([\d,.]+) MWh<", calculator._text.value
    )
    assert row is not None
    assert float(row[1].replace(",", "")) == pytest.approx(1.1 * of_gpus, abs=0.1)


def test_every_gpu_has_days_and_fewer_with_a_faster_one() -> None:
    calculator, days = scaling(), {}
    for gpu in ACCELERATORS:
        calculator.set(gpu=gpu)
        figure = calculator.answer().figure
        assert figure is not None
        days[gpu] = figure[0]
    assert days["m1-16gb"] / days["a100-80gb"] == pytest.approx(312 / 2.6)
    assert min(days, key=lambda gpu: days[gpu]) == "b200-180gb"


def test_a_lecture_shows_the_laws_in_the_calculators_words(repository: Path) -> None:
    lecture = json.loads((repository / "lectures/lecture4_scaling.ipynb").read_text("utf-8"))
    sources = ["".join(cell["source"]) for cell in lecture["cells"] if cell["cell_type"] == "code"]
    (source,) = [source for source in sources if "LAWS" in source]
    words: dict[str, Any] = {"Markdown": str}
    exec(source, words)
    assert [line.split(" | ")[0] for line in words["lines"][2:]] == [
        f"| {law}" for law in LAWS.values()
    ]
    assert not set(APPROACHES) & set(re.findall(r"[\w-]+", " ".join(words["lines"])))
    assert list(LAWS) == list(APPROACHES)
