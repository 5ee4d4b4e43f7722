"""A generator of names."""
def inconsistent_rows(table):
    return (row["name"] for row in table if row["n_heads"] * row["d_head"] - row["d_model"])
