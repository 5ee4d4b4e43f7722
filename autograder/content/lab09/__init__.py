"""Hidden half of lab 9, quantization: one module for every one or two exercises."""

from __future__ import annotations

from autograder.content.lab09.adam8bit import adam8bit_step
from autograder.content.lab09.affine import quantize_affine
from autograder.content.lab09.find_the_leak import find_the_leak
from autograder.content.lab09.int4 import pack_int4
from autograder.content.lab09.int8_linear import int8_linear
from autograder.content.lab09.lora import lora
from autograder.content.lab09.nf4 import nf4
from autograder.content.lab09.stored_bytes import stored_bytes
from autograder.content.lab09.straight_through import fake_quant, ternary_linear
from autograder.content.lab09.symmetric import quantize_symmetric
from autograder.model.task import Lab
from peakmem.labs.session import HIDDEN_MODULES

__all__ = ["LAB"]

LAB = Lab(
    name="lab09_quantization",
    tasks=(
        quantize_symmetric,
        quantize_affine,
        pack_int4,
        int8_linear,
        nf4,
        stored_bytes,
        find_the_leak,
        fake_quant,
        lora,
        ternary_linear,
        adam8bit_step,
    ),
    hides=HIDDEN_MODULES["lab09_quantization"],
)
