"""Divides with a fraction, and keeps the order in a list."""
from fractions import Fraction


def inconsistent_rows(table):
    return [r["name"] for r in table if Fraction(r["d_model"], r["n_heads"]) != r["d_head"]]
