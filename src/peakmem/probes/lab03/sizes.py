"""Probes of lab 3's arithmetic: bytes of states, models and steps, from sizes."""

from __future__ import annotations

from peakmem.probes import calling

__all__ = ["bytes_per_parameter", "largest_model", "peak_of_step", "state_bytes", "step_timeline"]


bytes_per_parameter = calling("bytes_per_parameter")  # (recipe)
state_bytes = calling("state_bytes")  # (shapes, optimizer)
largest_model = calling("largest_model")  # (recipe, budget_bytes, activation_bytes)
step_timeline = calling("step_timeline")  # (param_bytes, activation_bytes, events)
peak_of_step = calling("peak_of_step")  # (shapes, activation_bytes, optimizer)
