"""numpy's whole numbers of 64 bits."""
import numpy as np


def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return np.multiply.reduce(np.array([n_layers, tokens, d_model, bytes_per_element], np.int64))
