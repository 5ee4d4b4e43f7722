"""`peakmem estimate --inference`: predicts and prints the memory that inference takes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from peakmem.predict.inference import Inference, Serving
from peakmem.show.cli.step import Step
from peakmem.show.cli.terminal import BAD, GOOD, tell
from peakmem.show.inference_report import InferenceReport
from peakmem.show.picture import save_owners
from peakmem.specs.families import read_parameters
from peakmem.specs.kv_cache import cache_layers, cache_of_shape
from peakmem.specs.model_config import read_config
from peakmem.specs.models import model
from peakmem.specs.parameter_table import table_of_shape

if TYPE_CHECKING:
    from peakmem.specs.recipes import Quantized

__all__ = ["run_inference"]


def run_inference(step: Step) -> int:
    """Print the report; return 0 if the model fits, 1 if not."""
    _refuse_training(step)
    serving = Serving(
        batch=step.batch,
        context=step.sequence if step.context is None else step.context,
        precision=step.precision,
        quantized=cast("Quantized | None", step.quantized_base),  # Serving refuses all others
        tensor=step.tensor,
        expert=step.expert,
    )
    report = InferenceReport.of(*_model(step, serving), step.device)
    fits = report.margin_bytes >= 0
    if step.plot:
        limit = report.device.memory_bytes
        save_owners(step.plot, report.name, report.found.by_owner(), limit)
    if step.json:
        print(json.dumps(report.as_json(), indent=2))
    elif step.quiet:
        tell(report.fit_line, style=GOOD if fits else BAD)
    else:
        tell(*report.lines())
    return 0 if fits else 1


def _model(step: Step, serving: Serving) -> tuple[str, Inference]:
    if step.config is None:
        if step.model is None:
            raise ValueError("no model given; expected --model, such as llama3-8b, or --config")
        shape = model(step.model)
        table = table_of_shape(shape)
        return shape.name, Inference(table, cache_of_shape(shape), shape.vocab, serving)
    config = read_config(step.config)
    table_read = read_parameters(config)
    if table_read is None:
        raise ValueError(
            f"{config.source}: the weights of a {config.class_name or config.model_type} can't be "
            "counted from its config, so its inference isn't predicted; leave out --inference"
        )
    cache = cache_layers(config)
    return step.config, Inference(table_read, cache, config.size("vocab_size"), serving)


def _refuse_training(step: Step) -> None:
    """Raise ValueError for options that apply only to training."""
    given = [
        option
        for option, value in (
            ("--lora-rank", step.lora_rank),
            ("--zero", step.zero),
            ("--offload", step.offload),
            ("--export", step.export),
            ("--data-parallel", step.data > 1),
            ("--pipeline", step.pipeline > 1),
            ("--context-parallel", step.context_devices > 1),
        )
        if value
    ]
    if given:
        verb = "belongs" if len(given) == 1 else "belong"
        raise ValueError(
            f"{' and '.join(given)} {verb} to training; leave out --inference or these options"
        )
