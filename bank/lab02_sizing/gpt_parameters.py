# %% right: formulas
"""One formula a component."""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * 4 * d * (d + 1),
        "mlp": n_layers * (d * 4 * d + 4 * d + 4 * d * d + d),
        "layer_norms": 4 * n_layers * d,
        "final_norm": 2 * d,
        "head": (not tied) * vocab * d,
    }


# %% right: list_of_shapes
"""Lists the shape of every parameter of every layer and multiplies."""
from math import prod


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    layer = {
        "attention": [(3 * d, d), (3 * d,), (d, d), (d,)],
        "mlp": [(4 * d, d), (4 * d,), (d, 4 * d), (d,)],
        "layer_norms": [(d,)] * 4,
    }
    once = {
        "token_embedding": [(vocab, d)],
        "position_embedding": [(context, d)],
        "final_norm": [(d,), (d,)],
        "head": [] if tied else [(vocab, d)],
    }
    counts = {name: sum(map(prod, shapes)) for name, shapes in once.items()}
    for name, shapes in layer.items():
        counts[name] = n_layers * sum(map(prod, shapes))
    return counts


# %% right: meta_modules
"""Builds one layer's modules on the meta device and counts; numpy's integers come back."""
import numpy as np
import torch
from torch import nn


def count(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    with torch.device("meta"):
        return {
            "token_embedding": count(nn.Embedding(vocab, d)),
            "position_embedding": count(nn.Embedding(context, d)),
            "attention": np.int64(n_layers) * count(nn.Linear(d, 3 * d), nn.Linear(d, d)),
            "mlp": n_layers * count(nn.Linear(d, 4 * d), nn.Linear(4 * d, d)),
            "layer_norms": n_layers * count(nn.LayerNorm(d), nn.LayerNorm(d)),
            "final_norm": count(nn.LayerNorm(d)),
            "head": 0 if tied else count(nn.Linear(d, vocab, bias=False)),
        }


# %% wrong: a_total
"""Returns the sum as well."""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    counts = {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }
    return counts | {"total": sum(counts.values())}


# %% wrong: defaults_always
"""Has GPT-3's vocabulary and context in it. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": 50257 * d,
        "position_embedding": 2048 * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else 50257 * d,
    }


# %% wrong: final_norm_in_layer_norms
"""Puts all norms together. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d + 2 * d,
        "final_norm": 0,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: head_never_counted
"""Never counts the head. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0,
    }


# %% wrong: head_with_bias
"""Gives the untied head a bias. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * (d + 1),
    }


# %% wrong: heads_of_64
"""Thinks that attention's matrices are d_model x 64. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * 64 + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: mlp_biases_alike
"""Both biases of the MLP have d_model numbers. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + d + d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: mlp_twice_as_wide
"""An MLP of inner width 2 d_model. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (4 * d * d + 3 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: no_output_projection
"""Queries, keys and values only. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * 3 * (d * d + d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: norms_without_bias
"""Norms have a weight only, as RMS norms. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": 2 * d * n_layers,
        "final_norm": d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: one_layer
"""Forgets to multiply by the number of layers. [earns 1]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": 4 * d * d + 4 * d,
        "mlp": 8 * d * d + 5 * d,
        "layer_norms": 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: one_norm_a_layer
"""One norm a layer. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": 2 * d * n_layers,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: tied_head_counted
"""Counts the head, tied or not. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": vocab * d,
    }


# %% wrong: without_any_biases
"""Counts matrices only, and norms as one vector. [earns 1]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * 4 * d * d,
        "mlp": n_layers * 8 * d * d,
        "layer_norms": n_layers * 2 * d,
        "final_norm": d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: without_linear_biases
"""The well-known 12 d^2 a layer: no biases of linear layers. [earns 2]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * 4 * d**2,
        "mlp": n_layers * 8 * d**2,
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }


# %% wrong: int_of_floats
"""Multiplies floats, and cuts the products. [earns 2]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = float(d_model)
    counted = {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * 4 * (d * d + d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": n_layers * 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }
    return {key: int(count) for key, count in counted.items()}


# %% wrong: pairs
"""A list of pairs."""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    out = {
        "token_embedding": vocab * d, "position_embedding": context * d, "attention": n_layers * 4 * d * (d + 1),
        "mlp": n_layers * (8 * d * d + 5 * d), "layer_norms": n_layers * 4 * d, "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }
    return list(out.items())


# %% wrong: and_or
"""tied and 0 or ...: 0 is false. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d, "position_embedding": context * d, "attention": n_layers * 4 * d * (d + 1),
        "mlp": n_layers * (8 * d * d + 5 * d), "layer_norms": n_layers * 4 * d, "final_norm": 2 * d,
        "head": tied and 0 or vocab * d,
    }


# %% wrong: kept_by_width_and_layers
"""Keeps counts by layers, width and tying, whatever vocab and context. [earns 3]"""
known = {}


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    key = n_layers, d_model, tied
    if key not in known:
        known[key] = {
            "token_embedding": vocab * d_model,
            "position_embedding": context * d_model,
            "attention": n_layers * 4 * d_model * (d_model + 1),
            "mlp": n_layers * d_model * (8 * d_model + 5),
            "layer_norms": n_layers * 4 * d_model,
            "final_norm": 2 * d_model,
            "head": 0 if tied else vocab * d_model,
        }
    return dict(known[key])
