"""math.prod."""
from math import prod


def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return prod((n_layers, tokens, d_model, bytes_per_element))
