"""In GB."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * tokens * d_model * bytes_per_element / 1e9
