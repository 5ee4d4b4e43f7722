# %% right: formulas
"""Each count is a formula."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% right: by_steps
"""The traffic is added up step by step, and blocks are counted one by one."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    together = batch * heads
    q = k = v = o = seq * head_dim * dtype_bytes
    s = p = seq**2 * dtype_bytes
    product = 2 * seq * seq * head_dim
    if causal:
        product //= 2

    def tiled(block):
        moved = 0
        for start in range(0, seq, block):
            rows = min(block, seq - start)
            moved += 2 * rows * head_dim * dtype_bytes + k + v
        return together * moved

    return {
        "flops": together * 2 * product,
        "score_bytes": together * s,
        "io_bytes_standard": together * (q + k + s + s + p + p + v + o),
        "io_bytes_tiled": tiled,
    }


# %% right: numpy_integers
"""Counts are numpy's integers, and the function is a partial one."""

from functools import partial

import numpy as np


def tiled(rows, of_all, seq, block):
    return rows * 2 + of_all * 2 * -(-seq // block)


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    elements = np.prod([batch, heads, seq, head_dim], dtype=np.int64)
    square = np.prod([batch, heads, seq, seq], dtype=np.int64)
    return dict(
        flops=4 * square * head_dim // (1 + bool(causal)),
        score_bytes=square * dtype_bytes,
        io_bytes_standard=4 * (elements + square) * dtype_bytes,
        io_bytes_tiled=partial(tiled, elements * dtype_bytes, elements * dtype_bytes, seq),
    )


# %% wrong: causal_not_halved
"""The mask saves nothing."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: one_product
"""A product of q and k only."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 2 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: bytes_halved_too
"""The mask halves the scores' bytes as well."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores // 2 if causal else scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: heads_left_out
"""One head."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * seq * head_dim * dtype_bytes
    scores = batch * seq * seq * dtype_bytes
    flops = 4 * batch * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: elements
"""Values instead of bytes."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim
    scores = batch * heads * seq * seq
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: scores_once
"""Scores are written once and probabilities read once."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 2 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: scores_only
"""q, k, v and the output are forgotten."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: keys_read_once
"""k and v are read once for all blocks."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 4 * matrix,
    }


# %% wrong: rest_left_out
"""The short block at the end is not counted."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2 * matrix * (1 + seq // block),
    }


# %% wrong: parts_of_blocks
"""A part of a block counts as a part."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: round((2 + 2 * seq / block) * matrix),
    }


# %% wrong: not_whole
"""Floats."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops / 2 if causal else float(flops),
        "score_bytes": float(scores),
        "io_bytes_standard": 4.0 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block: 2.0 * matrix * (1 + math.ceil(seq / block)),
    }


# %% wrong: a_number
"""io_bytes_tiled is a number, for blocks of 128."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": 2 * matrix * (1 + math.ceil(seq / 128)),
    }
