"""The slide's rough 5 tensors a layer."""
def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    return 5 * n_layers * tokens * d_model * bytes_per_element
