"""Asks whether the heads divide the width, as torch does."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["d_model"] % row["n_heads"]}
