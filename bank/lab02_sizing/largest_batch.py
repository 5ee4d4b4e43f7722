# %% right: bisection
"""Doubles until it breaks the budget, then bisects."""
def needed(seq, shape, batch):
    d, L = shape.d_model, shape.n_layers
    layer = 4 * d * d + 4 * d + 8 * d * d + 5 * d + 4 * d
    parameters = shape.vocab * d + shape.context * d + L * layer + 2 * d
    return 16 * parameters + L * batch * seq * (34 * d + 5 * shape.n_heads * seq)


def largest_batch(seq, shape, budget_bytes):
    fits, breaks = 0, 1
    while needed(seq, shape, breaks) <= budget_bytes:
        fits, breaks = breaks, 2 * breaks
    while breaks - fits > 1:
        middle = (fits + breaks) // 2
        if needed(seq, shape, middle) <= budget_bytes:
            fits = middle
        else:
            breaks = middle
    return fits


# %% right: formula
"""One formula, without the other exercises."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    return max(0, (budget_bytes - 16 * parameters) // example)


# %% right: numpy_divmod
"""numpy's whole numbers, and divmod."""
import numpy as np


def largest_batch(seq, shape, budget_bytes):
    d = np.int64(shape.d_model)
    per_layer = np.int64(12) * d**2 + 13 * d
    state = 16 * (shape.n_layers * per_layer + (shape.vocab + shape.context) * d + 2 * d)
    if budget_bytes < state:
        return 0
    batch, _ = divmod(
        budget_bytes - state, shape.n_layers * seq * (34 * d + 5 * shape.n_heads * seq)
    )
    return batch


# %% wrong: at_least_one
"""Takes a batch of at least 1."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(1, left // example)


# %% wrong: below_zero
"""Returns a negative batch."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return left // example


# %% wrong: budget_excluded
"""Needs one byte more than it takes."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, (left - 1) // example)


# %% wrong: bytes_12
"""Forgets the fp32 copy of the weights."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 12 * parameters
    return max(0, left // example)


# %% wrong: bytes_18
"""Has gradients in fp32."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 18 * parameters
    return max(0, left // example)


# %% wrong: bytes_2
"""Has room for the weights only."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 2 * parameters
    return max(0, left // example)


# %% wrong: bytes_20
"""Counts fp32 gradients beside the fp16 ones."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 20 * parameters
    return max(0, left // example)


# %% wrong: default_context
"""Leaves vocab and context at GPT-3's."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (50257 + 2048 + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, left // example)


# %% wrong: seq_for_context
"""Counts as many positions as a sequence has tokens."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + seq + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, left // example)


# %% wrong: flash
"""Without scores."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * 34 * seq * d
    left = budget_bytes - 16 * parameters
    return max(0, left // example)


# %% wrong: head_untied
"""Counts the head twice."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (2 * shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, left // example)


# %% wrong: one_layer
"""Activations of one layer."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = 34 * seq * d + 5 * shape.n_heads * seq * seq
    left = budget_bytes - 16 * parameters
    return max(0, left // example)


# %% wrong: rounded_up
"""Rounds up."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, -(-left // example))


# %% wrong: seq_cut_to_context
"""Cuts the sequences."""
def largest_batch(seq, shape, budget_bytes):
    seq = min(seq, shape.context)
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + L * (12 * d * d + 13 * d)
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, left // example)


# %% wrong: without_biases
"""Counts no biases, and divides into floats first."""
def largest_batch(seq, shape, budget_bytes):
    L, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context) * d + L * 12 * d * d
    example = L * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left = budget_bytes - 16 * parameters
    return max(0, left // example)


# %% wrong: divides_floats
"""int(left / each): the quotient of two large numbers rounds up to the next whole one."""


def largest_batch(seq, shape, budget_bytes):
    d, n = shape.d_model, shape.n_layers
    parameters = (shape.vocab + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d
    each = n * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    return max(0, int((budget_bytes - 16 * parameters) / each))


# %% right: one_more_while_it_fits
"""Adds sequences by doubling steps, without a division."""


def largest_batch(seq, shape, budget_bytes):
    d, n = shape.d_model, shape.n_layers
    parameters = (shape.vocab + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d
    each = n * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    left, batch = budget_bytes - 16 * parameters, 0
    for power in range(60, -1, -1):
        if each << power <= left:
            left -= each << power
            batch += 1 << power
    return batch


# %% right: one_after_another
"""Tries one batch after another."""
from itertools import count


def largest_batch(seq, shape, budget_bytes):
    n, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + n * (12 * d * d + 13 * d)
    one = n * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    return next(b for b in count() if 16 * parameters + (b + 1) * one > budget_bytes)


# %% wrong: up_to_256
"""Tries no batch above 256."""


def largest_batch(seq, shape, budget_bytes):
    n, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + n * (12 * d * d + 13 * d)
    one = n * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    for batch in range(1, 257):
        if 16 * parameters + batch * one > budget_bytes:
            return batch - 1
    return 256


# %% wrong: none_beyond_context
"""Takes a sequence longer than the context for one that never fits."""


def largest_batch(seq, shape, budget_bytes):
    if seq > shape.context:
        return 0
    n, d = shape.n_layers, shape.d_model
    parameters = (shape.vocab + shape.context + 2) * d + n * (12 * d * d + 13 * d)
    one = n * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    return max((budget_bytes - 16 * parameters) // one, 0)


# %% wrong: heads_of_64
"""Heads are 64 wide."""
def _per_layer(seq, shape):
    return 34 * seq * shape.d_model + 5 * shape.n_heads * seq * seq


def _count(shape):
    d, n = shape.d_model, shape.n_layers
    return (shape.vocab + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d


def largest_batch(seq, shape, budget_bytes):
    each = 34 * seq * shape.d_model + 5 * (shape.d_model // 64) * seq**2
    return max((budget_bytes - 16 * _count(shape)) // (shape.n_layers * each), 0)


# %% wrong: context_left_out
"""Gives the vocabulary, and leaves context at GPT-3's."""


def largest_batch(seq, shape, budget_bytes):
    d, n = shape.d_model, shape.n_layers
    count = (shape.vocab + 2048) * d + n * (12 * d * d + 13 * d) + 2 * d
    each = n * (34 * seq * d + 5 * shape.n_heads * seq**2)
    return max((budget_bytes - 16 * count) // each, 0)


# %% wrong: changes_shape
"""Raises the shape's context to the sequence's length."""
def largest_batch(seq, shape, budget_bytes):
    shape.context = max(shape.context, seq)
    d, n = shape.d_model, shape.n_layers
    count = (shape.vocab + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d
    each = n * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    return max(0, (budget_bytes - 16 * count) // each)


# %% wrong: layer_rounded
"""Divides what is left among the layers, rounded up, and then by one layer's bytes."""
def largest_batch(seq, shape, budget_bytes):
    d, n = shape.d_model, shape.n_layers
    count = (shape.vocab + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d
    one = 34 * seq * d + 5 * shape.n_heads * seq * seq
    return max(0, -(-(budget_bytes - 16 * count) // n) // one)


# %% wrong: remembered_by_width
"""Remembers its two sums by seq, width and layers, whatever the heads, vocab and context."""
sums = {}


def largest_batch(seq, shape, budget_bytes):
    key = seq, shape.d_model, shape.n_layers
    if key not in sums:
        n, d = shape.n_layers, shape.d_model
        sums[key] = (
            (shape.vocab + shape.context + 2) * d + n * (12 * d * d + 13 * d),
            n * (34 * seq * d + 5 * shape.n_heads * seq**2),
        )
    parameters, each = sums[key]
    return max((budget_bytes - 16 * parameters) // each, 0)


# %% wrong: kept_without_the_vocabulary
"""Keeps the bytes of the parameters without the vocabulary in their key."""
found = {}


def largest_batch(seq, shape, budget_bytes):
    n, d = shape.n_layers, shape.d_model
    key = n, d, shape.context
    if key not in found:
        embeddings = (shape.vocab + shape.context) * d
        found[key] = 16 * (embeddings + n * (12 * d * d + 13 * d) + 2 * d)
    kept = n * (34 * seq * d + 5 * shape.n_heads * seq * seq)
    return max((budget_bytes - found[key]) // kept, 0)
