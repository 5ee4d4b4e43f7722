"""Probes of lab 9, quantization: one module for each subject."""

from peakmem.probes.lab09.adam8bit import adam8bit_step, large_steps, trained
from peakmem.probes.lab09.int4 import pack_int4
from peakmem.probes.lab09.leak import find_the_leak, gradient_through
from peakmem.probes.lab09.lora import adapted, lora
from peakmem.probes.lab09.straight_through import fake_quant, ternary_linear
from peakmem.probes.lab09.values import (
    int8_linear,
    nf4,
    quantize_affine,
    quantize_symmetric,
    stored_bytes,
)

__all__ = [
    "adam8bit_step",
    "adapted",
    "fake_quant",
    "find_the_leak",
    "gradient_through",
    "int8_linear",
    "large_steps",
    "lora",
    "nf4",
    "pack_int4",
    "quantize_affine",
    "quantize_symmetric",
    "stored_bytes",
    "ternary_linear",
    "trained",
]
