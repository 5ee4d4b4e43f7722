"""One norm a layer. [earns 3]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * (4 * d * d + 4 * d),
        "mlp": n_layers * (8 * d * d + 5 * d),
        "layer_norms": 2 * d * n_layers,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }
