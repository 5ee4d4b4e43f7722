"""Adds up the layers."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return sum(tokens * d_model * bytes_per_element for _ in range(n_layers))
