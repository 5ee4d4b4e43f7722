"""The slide's 96 x 78."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * (tokens * d_model * bytes_per_element // 10**9)
