"""Lists the shape of every parameter of every layer and multiplies."""
from math import prod


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    layer = {
        "attention": [(3 * d, d), (3 * d,), (d, d), (d,)],
        "mlp": [(4 * d, d), (4 * d,), (d, 4 * d), (d,)],
        "layer_norms": [(d,)] * 4,
    }
    once = {
        "token_embedding": [(vocab, d)],
        "position_embedding": [(context, d)],
        "final_norm": [(d,), (d,)],
        "head": [] if tied else [(vocab, d)],
    }
    counts = {name: sum(map(prod, shapes)) for name, shapes in once.items()}
    for name, shapes in layer.items():
        counts[name] = n_layers * sum(map(prod, shapes))
    return counts
