"""One temporary in the step. [earns 2]"""


def predict_training(shape, batch, seq):
    d, n, tokens = shape.d_model, shape.n_layers, batch * seq
    context = shape.context
    count = shape.vocab * d + context * d + n * (12 * d * d + 13 * d) + 2 * d
    parameters = gradients = 4 * count
    optimizer = 8 * count + 4 * (12 * n + 4)
    saved = 4 * tokens * (16 * d * n + 2 * d)
    logits = 4 * tokens * shape.vocab
    largest = 4 * d * max(shape.vocab, 4 * d)
    at_logits = parameters + optimizer + saved + 3 * logits
    in_step = parameters + gradients + optimizer + largest
    return {
        "parameters": parameters,
        "gradients": gradients,
        "optimizer": optimizer,
        "saved_activations": saved,
        "logits": logits,
        "peak": max(at_logits, in_step),
    }
