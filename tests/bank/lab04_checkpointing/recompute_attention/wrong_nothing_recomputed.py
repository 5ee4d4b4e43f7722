"""Calls the block. [earns 1]"""


def recompute_attention_only(block, x):
    return block(x)
