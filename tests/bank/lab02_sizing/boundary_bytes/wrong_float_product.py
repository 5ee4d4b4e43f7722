"""A product of floats, made an int at the end."""

def boundary_bytes(n_layers, tokens, d_model, bytes_per_element):
    per_layer = tokens * 1.0 * d_model * bytes_per_element
    return int(n_layers * per_layer)
