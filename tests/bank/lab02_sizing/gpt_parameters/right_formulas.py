"""One formula a component."""


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    return {
        "token_embedding": vocab * d,
        "position_embedding": context * d,
        "attention": n_layers * 4 * d * (d + 1),
        "mlp": n_layers * (d * 4 * d + 4 * d + 4 * d * d + d),
        "layer_norms": 4 * n_layers * d,
        "final_norm": 2 * d,
        "head": (not tied) * vocab * d,
    }
