"""Lets torch count the parameters, on the device without memory."""
import torch

from peakmem.nn import GPT


def predict_training(shape, batch, seq):
    with torch.device("meta"):
        sizes = [4 * p.numel() for p in GPT(shape).parameters()]
    answer = {"parameters": sum(sizes), "gradients": sum(sizes)}
    answer["optimizer"] = sum(2 * size + 4 for size in sizes)
    answer["saved_activations"] = 64 * batch * seq * shape.d_model * shape.n_layers
    answer["saved_activations"] += 8 * batch * seq * shape.d_model
    answer["logits"] = 4 * batch * seq * shape.vocab
    forward = answer["parameters"] + answer["optimizer"] + answer["saved_activations"]
    answer["peak"] = max(forward + 3 * answer["logits"], 4 * sum(sizes) + 2 * max(sizes))
    return answer
