"""Forgets to multiply by the number of layers. [earns 1]"""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": 4 * d * d + 4 * d,
        "mlp": 8 * d * d + 5 * d,
        "layer_norms": 4 * d,
        "final_norm": 2 * d,
        "head": 0 if tied else vocab * d,
    }
