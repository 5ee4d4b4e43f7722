"""torch's fused attention in place of the block's own. [earns 1]"""

import torch.nn.functional as F


def recompute_attention_only(block, x):
    attention = block.attention
    heads = attention.qkv(block.norm1(x)).chunk(3, dim=-1)
    q, k, v = (h.unflatten(-1, (attention.n_heads, -1)).transpose(1, 2) for h in heads)
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + attention.out(y.transpose(1, 2).flatten(2))
    return x + block.mlp(block.norm2(x))
