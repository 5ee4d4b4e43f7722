"""Columns as arrays, and an array of names."""
import numpy as np


def wrong(table):
    width, heads, size = (np.array([r[key] for r in table], int) for key in ("d_model", "n_heads", "d_head"))
    return heads * size != width


def inconsistent_rows(table):
    return np.array([row['name'] for row in table])[wrong(table)]
