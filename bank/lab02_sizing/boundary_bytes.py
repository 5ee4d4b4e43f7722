# %% right: numpy
"""numpy's whole numbers of 64 bits."""
import numpy as np


def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return np.multiply.reduce(np.array([n_layers, tokens, d_model, bytes_per_element], np.int64))


# %% right: prod
"""math.prod."""
from math import prod


def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return prod((n_layers, tokens, d_model, bytes_per_element))


# %% right: sum_over_layers
"""Adds up the layers."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return sum(tokens * d_model * bytes_per_element for _ in range(n_layers))


# %% wrong: elements
"""Forgets the bytes of an element."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * tokens * d_model


# %% wrong: five_times
"""The slide's rough 5 tensors per layer."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return 5 * n_layers * tokens * d_model * bytes_per_element


# %% wrong: float_product
"""A product of floats, made an int at the end."""

def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    per_layer = tokens * 1.0 * d_model * bytes_per_element
    return int(n_layers * per_layer)


# %% wrong: in_gb
"""In GB."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * tokens * d_model * bytes_per_element / 1e9


# %% wrong: in_gib
"""In GiB."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * tokens * d_model * bytes_per_element / 1024**3


# %% wrong: one_boundary_less
"""Counts boundaries between layers only."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return (n_layers - 1) * tokens * d_model * bytes_per_element


# %% wrong: one_boundary_more
"""Counts the embedding's output as well."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return (n_layers + 1) * tokens * d_model * bytes_per_element


# %% wrong: one_layer
"""Forgets the layers."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return tokens * d_model * bytes_per_element


# %% wrong: rounded_and_in_gb
"""The slide's 96 x 78."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * (tokens * d_model * bytes_per_element // 10**9)


# %% wrong: rounded_to_gb
"""Rounds to whole GB first, as the slide does."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * (tokens * d_model * bytes_per_element // 10**9) * 10**9


# %% wrong: kept_without_the_layers
"""Keeps results by all but the layers."""
known = {}


def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    key = tokens, d_model, bytes_per_element
    return known.setdefault(key, n_layers * tokens * d_model * bytes_per_element)
