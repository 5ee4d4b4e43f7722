"""Multiplies by the layers instead of the heads."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["n_layers"] * row["d_head"] != row["d_model"]}
