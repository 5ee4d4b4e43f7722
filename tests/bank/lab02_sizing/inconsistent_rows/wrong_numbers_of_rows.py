"""Returns the rows' numbers."""
def inconsistent_rows(table):
    return {i for i, row in enumerate(table) if row["n_heads"] * row["d_head"] != row["d_model"]}
