"""Rounds to whole GB first, as the slide does."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return n_layers * (tokens * d_model * bytes_per_element // 10**9) * 10**9
