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


# %% right: closure_ceil
"""math.ceil, a nested def."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    rows = batch * heads * seq

    def tiled(block):
        return 2 * rows * head_dim * dtype_bytes * (1 + math.ceil(seq / block))

    flops = 2 * (2 * rows * seq * head_dim)
    if causal:
        flops //= 2
    return dict(
        flops=flops,
        score_bytes=rows * seq * dtype_bytes,
        io_bytes_standard=4 * rows * dtype_bytes * (seq + head_dim),
        io_bytes_tiled=tiled,
    )


# %% right: simulated
"""Bytes counted block by block."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    class Tiled:
        def __call__(self, block):
            moved = 0
            for first in range(0, seq, block):
                rows = min(block, seq - first)
                moved += 2 * rows * head_dim + 2 * seq * head_dim
            return batch * heads * moved * dtype_bytes

    s = seq * seq
    d = seq * head_dim
    moved = sum([2 * d, s, s, s, s, d, d])
    return {
        "io_bytes_tiled": Tiled(),
        "io_bytes_standard": batch * heads * moved * dtype_bytes,
        "score_bytes": batch * heads * s * dtype_bytes,
        "flops": batch * heads * (2 if causal else 4) * s * head_dim,
    }


# %% right: partial
"""functools.partial and divmod."""

from functools import partial


def _tiled(size, seq, block):
    q, r = divmod(seq, block)
    return 2 * size * (1 + q + (1 if r else 0))


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    size = batch * heads * seq * head_dim * dtype_bytes
    score = batch * heads * seq * seq * dtype_bytes
    return {
        "flops": size // dtype_bytes * seq * (4 >> bool(causal)),
        "score_bytes": score,
        "io_bytes_standard": 4 * (size + score),
        "io_bytes_tiled": partial(_tiled, size, seq),
    }


# %% wrong: causal_half_of_pairs
"""A mask leaves n(n+1)/2 pairs."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    n = batch * heads
    one, square = n * seq * head_dim * dtype_bytes, n * seq * seq * dtype_bytes
    return {
        "flops": 4 * n * head_dim * (seq * (seq + 1) // 2 if causal else seq**2),
        "score_bytes": square,
        "io_bytes_standard": 4 * one + 4 * square,
        "io_bytes_tiled": lambda block: 2 * one + 2 * one * -(-seq // block),
    }


# %% wrong: late_binding
"""The function reads a global of the last call."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    n = batch * heads
    one, square = n * seq * head_dim * dtype_bytes, n * seq * seq * dtype_bytes
    global ONE, SEQ
    ONE, SEQ = one, seq
    return {
        "flops": 4 * n * seq**2 * head_dim // (2 if causal else 1),
        "score_bytes": square,
        "io_bytes_standard": 4 * one + 4 * square,
        "io_bytes_tiled": lambda block: 2 * ONE + 2 * ONE * -(-SEQ // block),
    }


_first = attention_cost(1, 1, 4, 2, False, 2)


# %% wrong: softmax_counts
"""Softmax's flops count."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    n = batch * heads
    one, square = n * seq * head_dim * dtype_bytes, n * seq * seq * dtype_bytes
    return {
        "flops": (4 * head_dim + 3) * n * seq**2 // (2 if causal else 1),
        "score_bytes": square,
        "io_bytes_standard": 4 * one + 4 * square,
        "io_bytes_tiled": lambda block: 2 * one + 2 * one * -(-seq // block),
    }


# %% wrong: block_capped
"""Blocks beyond seq move a part of k and v."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    n = batch * heads
    one, square = n * seq * head_dim * dtype_bytes, n * seq * seq * dtype_bytes
    return {
        "flops": 4 * n * seq**2 * head_dim // (2 if causal else 1),
        "score_bytes": square,
        "io_bytes_standard": 4 * one + 4 * square,
        "io_bytes_tiled": lambda block: 2 * one + 2 * one * max(1, seq // block),
    }


# %% wrong: batch_shares_keys
"""k and v are shared by the heads."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    n = batch * heads
    one, square = n * seq * head_dim * dtype_bytes, n * seq * seq * dtype_bytes
    return {
        "flops": 4 * n * seq**2 * head_dim // (2 if causal else 1),
        "score_bytes": square,
        "io_bytes_standard": 4 * one + 4 * square,
        "io_bytes_tiled": lambda block: 2 * one + 2 * (one // heads) * -(-seq // block),
    }


# %% wrong: dtype_in_flops
"""Flops are multiplied by dtype_bytes."""


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    n = batch * heads
    one, square = n * seq * head_dim * dtype_bytes, n * seq * seq * dtype_bytes
    return {
        "flops": 4 * dtype_bytes * n * seq**2 // 2 * head_dim // (2 if causal else 1),
        "score_bytes": square,
        "io_bytes_standard": 4 * one + 4 * square,
        "io_bytes_tiled": lambda block: 2 * one + 2 * one * -(-seq // block),
    }


# %% wrong: block_kept
"""The function keeps the first block that it gets."""

import math


def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes) -> dict:
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 4 * batch * heads * seq * seq * head_dim
    return {
        "flops": flops // 2 if causal else flops,
        "score_bytes": scores,
        "io_bytes_standard": 4 * matrix + 4 * scores,
        "io_bytes_tiled": lambda block, first=[]: (first.append(block), 2 * matrix * (1 + math.ceil(seq / first[0])))[1],
    }


# %% right: loop_over_rows
"""Rows block by block, and a partial function."""

import functools

def _tiled(block, seq, head_dim, many, size):
    total = 0
    for first in range(0, seq, block):
        rows = min(block, seq - first)
        total += 2 * rows * head_dim + 2 * seq * head_dim
    return total * many * size

def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    many = batch * heads
    per = seq * head_dim
    return dict(
        flops=(many * 4 * seq**2 * head_dim) >> bool(causal),
        score_bytes=many * seq**2 * dtype_bytes,
        io_bytes_standard=many * dtype_bytes * ((2 * per + seq**2) + (seq**2 + seq**2) + (seq**2 + per + per)),
        io_bytes_tiled=functools.partial(_tiled, seq=seq, head_dim=head_dim, many=many, size=dtype_bytes),
    )


# %% wrong: rounded_blocks
"""Blocks are rounded, so that a short end counts only if it's more than half a block."""

import math

def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 2 * 2 * batch * heads * seq * seq * head_dim
    if causal:
        flops //= 2

    def tiled(block):
        n = round(seq / block)
        return 2 * matrix + n * 2 * matrix

    return {"flops": flops, "score_bytes": scores, "io_bytes_standard": 4 * matrix + 4 * scores, "io_bytes_tiled": tiled}


# %% wrong: rounded_blocks_at_least_one
"""Blocks are rounded, but one at least."""

import math

def attention_cost(batch, heads, seq, head_dim, causal, dtype_bytes):
    matrix = batch * heads * seq * head_dim * dtype_bytes
    scores = batch * heads * seq * seq * dtype_bytes
    flops = 2 * 2 * batch * heads * seq * seq * head_dim
    if causal:
        flops //= 2

    def tiled(block):
        n = max(1, round(seq / block))
        return 2 * matrix + n * 2 * matrix

    return {"flops": flops, "score_bytes": scores, "io_bytes_standard": 4 * matrix + 4 * scores, "io_bytes_tiled": tiled}
