# %% right: division
"""Divides with a fraction, and keeps the order in a list."""
from fractions import Fraction


def inconsistent_rows(table):
    return [r["name"] for r in table if Fraction(r["d_model"], r["n_heads"]) != r["d_head"]]


# %% right: generator
"""A generator of names."""
def inconsistent_rows(table):
    return (row["name"] for row in table if row["n_heads"] * row["d_head"] - row["d_model"])


# %% right: numpy
"""Columns as arrays, and an array of names."""
import numpy as np


def wrong(table):
    width, heads, size = (np.array([r[key] for r in table], int) for key in ("d_model", "n_heads", "d_head"))
    return heads * size != width


def inconsistent_rows(table):
    return np.array([row['name'] for row in table])[wrong(table)]


# %% wrong: consistent_rows
"""Has the test the wrong way round."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["n_heads"] * row["d_head"] == row["d_model"]}


# %% wrong: copied_from_the_paper
"""Has the two names in it."""
def inconsistent_rows(table):
    return {"GPT-3 XL", "GPT-3 13B"} & {row["name"] for row in table}


# %% wrong: divisibility_only
"""Asks whether the heads divide the width, as torch does."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["d_model"] % row["n_heads"]}


# %% wrong: floor_division
"""Divides with // and so misses remainders."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["d_model"] // row["n_heads"] != row["d_head"]}


# %% wrong: floored_heads
"""Divides by the heads' width with //."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["d_model"] // row["d_head"] != row["n_heads"]}


# %% wrong: layers_for_heads
"""Multiplies by the layers instead of the heads."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["n_layers"] * row["d_head"] != row["d_model"]}


# %% wrong: numbers_of_rows
"""Returns the rows' numbers."""
def inconsistent_rows(table):
    return {i for i, row in enumerate(table) if row["n_heads"] * row["d_head"] != row["d_model"]}


# %% wrong: rows_not_names
"""Returns the rows themselves."""
def inconsistent_rows(table):
    return [row for row in table if row["n_heads"] * row["d_head"] != row["d_model"]]


# %% wrong: too_narrow_only
"""Finds heads that are too narrow only."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["n_heads"] * row["d_head"] < row["d_model"]}


# %% wrong: too_wide_only
"""Finds heads that are too wide only."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["n_heads"] * row["d_head"] > row["d_model"]}


# %% wrong: tolerates_one
"""Takes widths that differ by one for equal."""
def inconsistent_rows(table):
    return {row["name"] for row in table if abs(row["n_heads"] * row["d_head"] - row["d_model"]) > 1}


# %% wrong: quotient_rounded_up
"""The quotient rounded up."""


def inconsistent_rows(table):
    return {r["name"] for r in table if -(-r["d_model"] // r["n_heads"]) != r["d_head"]}


# %% wrong: removes_while_iterating
"""Removes from a copy while it iterates over it: skips rows."""


def inconsistent_rows(table):
    rows = list(table)
    for row in rows:
        if row["n_heads"] * row["d_head"] == row["d_model"]:
            rows.remove(row)
    return {row["name"] for row in rows}


# %% wrong: multiples_pass
"""Asks whether all heads together divide the width."""


def inconsistent_rows(table):
    return {r["name"] for r in table if r["d_model"] % (r["n_heads"] * r["d_head"])}


# %% wrong: divisors_pass
"""Asks whether the width divides all heads together."""


def inconsistent_rows(table):
    return {r["name"] for r in table if (r["n_heads"] * r["d_head"]) % r["d_model"]}


# %% wrong: divisible_by_both
"""Asks whether the number of heads and their size both divide the width."""


def inconsistent_rows(table):
    return {r["name"] for r in table if r["d_model"] % r["n_heads"] or r["d_model"] % r["d_head"]}


# %% right: divmod
"""The quotient and the remainder at once."""


def inconsistent_rows(table):
    names = []
    for row in table:
        if divmod(row["d_model"], row["n_heads"]) != (row["d_head"], 0):
            names.append(row["name"])
    return names


# %% wrong: one_row_of_a_width
"""Keeps one row of each width."""


def inconsistent_rows(table):
    by_width = {row["d_model"]: row for row in table}
    return {r["name"] for r in by_width.values() if r["n_heads"] * r["d_head"] != r["d_model"]}


# %% right: keys_of_a_dict
"""Returns a dict's keys."""


def inconsistent_rows(table):
    found = {}
    for row in table:
        if row["n_heads"] * row["d_head"] - row["d_model"]:
            found[row["name"]] = row
    return found.keys()
