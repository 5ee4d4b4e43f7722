# %% right: every_tensor
"""A list of all parameter tensors; statistics and token numbers count, too."""
from math import prod


def predict_training(shape, batch, seq):
    d = shape.d_model
    layer = [(d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,)]
    layer += [(4 * d, d), (4 * d,), (d, 4 * d), (d,)]
    tensors = [(shape.vocab, d), (shape.context, d), *(layer * shape.n_layers), (d,), (d,)]
    sizes = [4 * prod(size) for size in tensors]
    state = sum(8 * prod(size) + 4 for size in tensors)
    a_token = [d, d, 3 * d, d, shape.n_heads, d, d, 4 * d, 4 * d, 4] * shape.n_layers + [2 * d, 2]
    saved = batch * seq * (4 * sum(a_token) + 2 * 8)
    logits = batch * seq * shape.vocab * 4
    before, temporaries = 0, 0
    for size in sizes:
        temporaries = max(temporaries, before + 2 * size)
        before = size
    moments = [
        sum(sizes) + state + saved + 3 * logits,  # the logits' gradient
        2 * sum(sizes) + state + 2 * sizes[0],  # the embedding's gradients, three of them
        2 * sum(sizes) + state + temporaries,  # the optimizer
    ]
    names = ("parameters", "gradients", "optimizer", "saved_activations", "logits", "peak")
    return dict(zip(names, (sum(sizes), sum(sizes), state, saved, logits, max(moments))))


# %% right: numpy
"""Counts with numpy integers, and gives the peak as a float."""
import numpy as np


def predict_training(shape, batch, seq):
    n, d, h, v = (np.int64(x) for x in (shape.n_layers, shape.d_model, shape.n_heads, shape.vocab))
    weights = np.array([v * d, shape.context * d, n * 3 * d * d, n * d * d, n * 8 * d * d])
    small = n * (3 + 1 + 4 + 1 + 4) * d + 2 * d
    count = weights.sum() + small
    rows = np.array([2 + 3 + 1, 2 + 4 + 4]) * d
    saved = 4 * batch * seq * (n * (rows.sum() + h + 4) + 2 * d + 2)
    logits = np.int64(4) * batch * seq * v
    optimizer = 2 * 4 * count + 4 * (12 * n + 4)
    peak = np.maximum(
        4 * count + optimizer + saved + 3 * logits,
        8 * count + optimizer + 8 * d * np.maximum(v, 4 * d),
    )
    return {
        "parameters": 4 * count,
        "gradients": 4 * count,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": float(peak),
    }


# %% right: rules
"""The rules of the text, without statistics and token numbers."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% right: torch_counts
"""Lets torch count the parameters, on the device without memory."""
import torch

from peakmem.nn import GPT


def predict_training(shape, batch, seq):
    with torch.device("meta"):
        sizes = [4 * p.numel() for p in GPT(shape).parameters()]
    answer = {"parameters": sum(sizes), "gradients": sum(sizes)}
    answer["optimizer"] = sum(2 * size + 4 for size in sizes)
    answer["saved_activations"] = 64 * batch * seq * shape.d_model * shape.n_layers
    answer["saved_activations"] += 8 * batch * seq * shape.d_model
    answer["logits"] = 4 * batch * seq * shape.vocab
    forward = answer["parameters"] + answer["optimizer"] + answer["saved_activations"]
    answer["peak"] = max(forward + 3 * answer["logits"], 4 * sum(sizes) + 2 * max(sizes))
    return answer


# %% wrong: activations_in_step
"""Activations kept in the step. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + saved + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: biases_forgotten
"""No biases in the linear layers. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 4 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: bytes_2
"""Weights and gradients in 16 bits."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 2 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: counters_forgotten
"""No step counters. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: default_context
"""GPT-3's context for every model."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = 2048
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: embedding_is_largest
"""Takes the embedding for the largest parameter. [earns 3]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * shape.vocab
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: final_norm_forgotten
"""Nothing kept after the last layer. [earns 1]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: gradients_at_logits
"""Gradients from the start. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + gradients + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: head_untied
"""The head as a matrix of its own."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d + shape.vocab * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: in_mib
"""MiB instead of bytes."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits / 2**20,
        "peak": max(at_logits, in_step) / 2**20,
    }


# %% wrong: logits_among_saved
"""The logits among the saved activations. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved + logits,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: logits_three_times
"""Three copies of logits kept. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": 3 * logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: no_temporaries
"""No temporaries in the step. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: one_copy_of_logits
"""One copy of the logits at the peak. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: one_layer
"""The activations of one layer."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: one_moment
"""One moment, as momentum keeps."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 4 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: one_temporary
"""One temporary in the step. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: only_logits
"""The peak is always at the logits' gradient. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": at_logits,
    }


# %% wrong: only_step
"""The peak is always in the step. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": in_step,
    }


# %% wrong: other_keys
"""Names the saved activations otherwise."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: paper_doubled
"""68 sbh a layer, twice 2.6. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 68 * tokens * d * n
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: peak_is_sum
"""The sum of all components. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": parameters + gradients + optimizer + saved + logits,
    }


# %% wrong: saved_at_2_bytes
"""34 sbh a layer, as in 2.6."""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 34 * tokens * d * n
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: two_copies_of_logits
"""Two copies of the logits at the peak. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 2 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: qkv_largest
"""Takes the matrix of queries, keys and values for the largest. [earns 3]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    count = (shape.vocab + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 3 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    peak = max(at_logits, in_step)
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": peak,
    }


# %% wrong: counters_16_a_layer
"""Counts 16 parameter tensors per layer, as the example has. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    count = (shape.vocab + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (16 * n)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + 2 * largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }


# %% wrong: forward_by_data
"""Runs the model, and adds up what its graph has saved, under names from data. [earns 0]"""
from functools import reduce

import torch

from peakmem.nn import GPT


def predict_training(shape, batch, seq):
    model = GPT(shape)
    tokens = torch.zeros(batch, seq, dtype=torch.long)
    cross_entropy = reduce(getattr, ["nn", "functional", "cross_entropy"], torch)
    todo = [cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).grad_fn]
    kept, seen = {}, set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        todo += [following for following, _ in node.next_functions]
        for name in dir(node):
            value = getattr(node, name) if name.startswith("_saved_") else None
            for tensor in value if isinstance(value, (list, tuple)) else [value]:
                if torch.is_tensor(tensor):
                    storage = tensor.untyped_storage()
                    kept[storage.data_ptr()] = storage.nbytes()
    sizes = {p.untyped_storage().data_ptr(): 4 * p.numel() for p in model.parameters()}
    parameters, logits = sum(sizes.values()), 4 * batch * seq * shape.vocab
    optimizer = 2 * parameters + 4 * len(sizes)
    saved = sum(n_bytes for place, n_bytes in kept.items() if place not in sizes) - logits
    at_logits = parameters + optimizer + saved + 3 * logits
    return {
        "parameters": parameters,
        "gradients": parameters,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, 2 * parameters + optimizer + 2 * max(sizes.values())),
    }


# %% wrong: kept_without_the_vocabulary
"""Keeps predictions without the vocabulary in their key. [earns 1]"""
found = {}


def predict_training(shape, batch, seq):
    n, d, v = shape.n_layers, shape.d_model, shape.vocab
    key = n, d, shape.context, batch, seq
    if key not in found:
        tokens = batch * seq
        weights = 4 * ((v + shape.context) * d + n * (12 * d * d + 13 * d) + 2 * d)
        optimizer = 2 * weights + 4 * (12 * n + 4)
        saved, logits = 4 * tokens * (16 * d * n + 2 * d), 4 * tokens * v
        largest = 4 * d * max(v, shape.context, 4 * d)
        found[key] = {
            "parameters": weights,
            "gradients": weights,
            "optimizer": optimizer,
            "saved_activations": saved,
            "logits": logits,
            "peak": optimizer + weights + max(saved + 3 * logits, weights + 2 * largest),
        }
    return found[key]
