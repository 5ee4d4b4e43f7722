"""Divides with // and so misses remainders."""
def inconsistent_rows(table):
    return {row["name"] for row in table if row["d_model"] // row["n_heads"] != row["d_head"]}
