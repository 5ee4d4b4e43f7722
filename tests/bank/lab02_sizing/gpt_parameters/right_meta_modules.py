"""Builds one layer's modules on the meta device and counts; numpy's integers come back."""
import numpy as np
import torch
from torch import nn


def count(*modules):
    return sum(p.numel() for module in modules for p in module.parameters())


def gpt_parameters(n_layers, d_model, vocab=50257, context=2048, tied=True):
    d = d_model
    with torch.device("meta"):
        return {
            "token_embedding": count(nn.Embedding(vocab, d)),
            "position_embedding": count(nn.Embedding(context, d)),
            "attention": np.int64(n_layers) * count(nn.Linear(d, 3 * d), nn.Linear(d, d)),
            "mlp": n_layers * count(nn.Linear(d, 4 * d), nn.Linear(4 * d, d)),
            "layer_norms": n_layers * count(nn.LayerNorm(d), nn.LayerNorm(d)),
            "final_norm": count(nn.LayerNorm(d)),
            "head": 0 if tied else count(nn.Linear(d, vocab, bias=False)),
        }
