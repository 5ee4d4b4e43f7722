"""Odd answers to every exercise of every lab: none earns a point from any judge."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from autograder.model.judge import judge_safely
from autograder.model.task import Answer
from peakmem.core import serialization
from tests.hostile.test_hidden_cases import TASKS

NAN = math.nan
ODD = {
    "nothing": None,
    "true": True,
    "nan": NAN,
    "infinite": math.inf,
    "negative": -1,
    "huge": -(10**400),
    "text": "4",
    "bytes": b"4",
    "empty list": [],
    "empty dict": {},
    "deep": [[[[[[[[NAN]]]]]]]],
    "nan keys": {NAN: NAN},
    "an array of nan": np.full(40, NAN),
    "an array without elements": np.zeros((2**20, 0)),
    "an array of 64 dimensions": np.full((1,) * 64, NAN),
    "complex numbers": np.full(3, complex(NAN, NAN)),
    "values": [("value", NAN)] * 40,
    "infinite values": [("value", math.inf)] * 40,
    "negative values": [("value", -(10**30))] * 40,
    "values that are lists": [("value", [NAN] * 40)] * 40,
    "values that are pairs": [("value", [(NAN, NAN, NAN)] * 40)] * 40,
    "exceptions": [("raised", "ZeroDivisionError", "4")] * 40,
    "an outcome": ("value", NAN),
    "lists of nan": [[NAN] * 40] * 40,
    "exceptions without end": [("raised", "E" * 10**6, "x" * 10**6)] * 40,
    "exceptions that no file takes": [("raised", chr(0xD800), "\x1b[2J" + chr(0xDFFF))] * 40,
    "half an outcome": [("value",)] * 40,
    "a dict of nan": {"value": NAN, "gradients": [NAN], "rise_bytes": NAN, "models": [NAN]},
}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_no_odd_answer_earns_a_point(task):
    cases = task.cases(np.random.default_rng(0))
    for name, value in ODD.items():
        sent = serialization.decode(serialization.encode(value))
        for memory in ("", "within", "refused"):
            verdict = judge_safely(task, cases, [Answer(sent, memory=memory)] * len(cases))
            assert verdict.points == 0, (name, memory)
            assert verdict.status in {"wrong", "could_not_judge"}, name
            assert len(verdict.message) < 3000, name
        assert re.fullmatch(r"[^\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]*", verdict.message), name
