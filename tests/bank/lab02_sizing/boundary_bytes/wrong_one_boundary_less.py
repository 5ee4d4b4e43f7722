"""Counts boundaries between layers only."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return (n_layers - 1) * tokens * d_model * bytes_per_element
