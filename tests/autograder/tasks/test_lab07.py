"""Lab 7: every answer of the bank, torch's scaler as the oracle, and the GPU's judge on figures."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.compare import same
from autograder.judge import judge
from autograder.student import LocalStudent
from autograder.task import Answer, Task, Verdict
from autograder.tasks.lab07 import LAB, gpu_speed, loss_scaler
from autograder.tasks.lab07.scalers import MUTANTS, LossScaler, TorchScaler
from peakmem.probes import Namespace
from peakmem.probes import lab07 as probes
from tests.autograder.tasks.bank_in_process import check_bank


@pytest.mark.parametrize("task", LAB.tasks, ids=lambda task: task.id)
def test_bank(task: Task) -> None:
    check_bank(LAB, task)
