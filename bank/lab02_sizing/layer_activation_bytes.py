# %% right: formulas
"""The paper's three formulas."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    s, b, h, a = seq, batch, d_model, n_heads
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    square = 5 * a * s**2 * b * (attention == "standard")
    return {"attention": 11 * s * b * h + square, "mlp": 19 * s * b * h, "layer_norms": 4 * s * b * h}


# %% right: list_of_tensors
"""Lists every tensor with its elements and bytes per element."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    wide = seq * batch * d_model
    pairs = seq * seq * batch * n_heads
    scores = {"standard": [(pairs, 2), (pairs, 1), (pairs, 2)], "flash": []}
    if attention not in scores:
        raise ValueError("attention is standard or flash")
    kept = {
        "attention": [(wide, 2)] * 5 + [(wide, 1)] + scores[attention],
        "mlp": [(wide, 2), (4 * wide, 2), (4 * wide, 2), (wide, 1)],
        "layer_norms": [(wide, 2), (wide, 2)],
    }
    return {part: sum(n * size for n, size in tensors) for part, tensors in kept.items()}


# %% right: numpy
"""numpy's whole numbers, multiplied at once."""
import numpy as np


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    match attention:
        case "standard":
            square = 5
        case "flash":
            square = 0
        case _:
            raise ValueError(attention)
    attention_bytes, mlp, norms = np.array([11, 19, 4], np.int64) * (seq * batch * d_model)
    attention_bytes += square * n_heads * seq**2 * batch
    return {"layer_norms": norms, "mlp": mlp, "attention": attention_bytes}


# %% wrong: elements
"""Counts numbers and not bytes."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 6 * sbh + standard * 3 * pairs, "mlp": 10 * sbh, "layer_norms": 2 * sbh}


# %% wrong: elements_in_fp32
"""4 bytes per element."""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 21 * sbh + standard * 9 * pairs, "mlp": 37 * sbh, "layer_norms": 8 * sbh}


# %% wrong: flash_keeps_nothing
"""Flash attention keeps nothing at all. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": standard * (11 * sbh + 5 * pairs), "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: flash_keeps_scores
"""Flash or not, it is all the same. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 11 * sbh + 5 * pairs, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: linear_in_seq
"""Scores as large as the boundary. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 11 * sbh + standard * 5 * sbh, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: masks_of_2_bytes
"""Masks as wide as what they mask. [earns 1]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 12 * sbh + standard * 6 * pairs, "mlp": 20 * sbh, "layer_norms": 4 * sbh}


# %% wrong: no_masks
"""No dropout masks. [earns 1]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 10 * sbh + standard * 4 * pairs, "mlp": 18 * sbh, "layer_norms": 4 * sbh}


# %% wrong: no_scores
"""Forgets the scores. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 11 * sbh, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: one_head
"""One head's scores. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = 1 * seq**2 * batch
    return {"attention": 11 * sbh + standard * 5 * pairs, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: one_norm
"""One norm a layer. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 11 * sbh + standard * 5 * pairs, "mlp": 19 * sbh, "layer_norms": 2 * sbh}


# %% wrong: unknown_attention_standard
"""Whatever is not flash is standard. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    standard = attention != "flash"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 11 * sbh + standard * 5 * pairs, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: unknown_attention_taken
"""Whatever is not standard is flash. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 11 * sbh + standard * 5 * pairs, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: without_gelu
"""GELU keeps nothing, as ReLU in place. [earns 2]"""
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    standard = attention == "standard"
    sbh = seq * batch * d_model
    pairs = n_heads * seq**2 * batch
    return {"attention": 11 * sbh + standard * 5 * pairs, "mlp": 11 * sbh, "layer_norms": 4 * sbh}


# %% wrong: width_of_a_head_cut
"""Counts heads by their width, cut to a whole number where the model's width is no multiple. [earns 2]"""


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    sbh = seq * batch * d_model
    squares = sbh * seq // (d_model // n_heads) if attention == "standard" else 0
    return {"attention": 11 * sbh + 5 * squares, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: formula_in_floats
"""The paper's sbh(11 + 5as/h) in floats, cut to an integer. [earns 2]"""


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError(attention)
    sbh = seq * batch * d_model
    per_element = 11 + (5 * n_heads * seq / d_model if attention == "standard" else 0)
    return {"attention": int(sbh * per_element), "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: any_flash
"""Takes whatever begins with flash. [earns 2]"""


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    sbh = seq * batch * d_model
    if attention.startswith("flash"):
        scores = 0
    elif attention == "standard":
        scores = 5 * n_heads * seq * seq * batch
    else:
        raise ValueError(attention)
    return {"attention": 11 * sbh + scores, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: substring
"""A substring test. [earns 2]"""


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in "standard flash":
        raise ValueError
    x, p = seq * batch * d_model, n_heads * seq * seq * batch * (attention == "standard")
    return {"attention": 11 * x + 5 * p, "mlp": 19 * x, "layer_norms": 4 * x}


# %% wrong: all_numpy_32
"""Multiplies in 32 bits, which wrap around. [earns 1]"""
import numpy as np
def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if attention not in ("standard", "flash"):
        raise ValueError
    factor = {"standard": 5, "flash": 0}[attention]
    s, b, h, a = np.array([seq, batch, d_model, n_heads]).astype(np.int32)
    with np.errstate(all="ignore"):
        sbh = s * b * h
        return {"attention": 11 * sbh + factor * a * s * s * b, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: ends_of_names
"""Goes by the ends of names, so "no-flash" counts as flash. [earns 2]"""


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    if not attention.endswith(("standard", "flash")):
        raise ValueError(attention)
    sbh = seq * batch * d_model
    squares = 0 if attention.endswith("flash") else 5 * n_heads * seq**2 * batch
    return {"attention": 11 * sbh + squares, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: strips_the_name
"""Takes spaces around a name for nothing. [earns 2]"""


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    sbh = seq * batch * d_model
    match attention.strip():
        case "standard":
            squares = 5 * n_heads * seq**2 * batch
        case "flash":
            squares = 0
        case _:
            raise ValueError(attention)
    return {"attention": 11 * sbh + squares, "mlp": 19 * sbh, "layer_norms": 4 * sbh}


# %% wrong: kept_without_the_heads
"""Keeps results by all but the heads. [earns 2]"""
known = {}


def layer_activation_bytes(seq, batch, d_model, n_heads, attention="standard"):
    key = seq, batch, d_model, attention
    if key not in known:
        if attention not in ("standard", "flash"):
            raise ValueError(attention)
        sbh = seq * batch * d_model
        squares = 5 * n_heads * seq**2 * batch * (attention == "standard")
        known[key] = {"attention": 11 * sbh + squares, "mlp": 19 * sbh, "layer_norms": 4 * sbh}
    return dict(known[key])
