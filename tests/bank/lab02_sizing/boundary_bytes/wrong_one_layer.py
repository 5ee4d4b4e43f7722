"""Forgets the layers."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return tokens * d_model * bytes_per_element
