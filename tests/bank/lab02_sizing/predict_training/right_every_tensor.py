"""A list of all parameter tensors; statistics and token numbers count, too."""
from math import prod


def predict_training(shape, batch, seq):
    d = shape.d_model
    layer = [(d,), (d,), (3 * d, d), (3 * d,), (d, d), (d,), (d,), (d,)]
    layer += [(4 * d, d), (4 * d,), (d, 4 * d), (d,)]
    tensors = [(shape.vocab, d), (shape.context, d), *(layer * shape.n_layers), (d,), (d,)]
    sizes = [4 * prod(size) for size in tensors]
    state = sum(8 * prod(size) + 4 for size in tensors)
    a_token = [d, d, 3 * d, d, shape.n_heads, d, d, 4 * d, 4 * d, 4] * shape.n_layers + [2 * d, 2]
    saved = batch * seq * (4 * sum(a_token) + 2 * 8)
    logits = batch * seq * shape.vocab * 4
    before, temporaries = 0, 0
    for size in sizes:
        temporaries = max(temporaries, before + 2 * size)
        before = size
    moments = [
        sum(sizes) + state + saved + 3 * logits,  # the logits' gradient
        2 * sum(sizes) + state + 2 * sizes[0],  # the embedding's gradients, three of them
        2 * sum(sizes) + state + temporaries,  # the optimizer
    ]
    names = ("parameters", "gradients", "optimizer", "saved_activations", "logits", "peak")
    return dict(zip(names, (sum(sizes), sum(sizes), state, saved, logits, max(moments))))
