"""Returns the rows themselves."""
def inconsistent_rows(table):
    return [row for row in table if row["n_heads"] * row["d_head"] != row["d_model"]]
