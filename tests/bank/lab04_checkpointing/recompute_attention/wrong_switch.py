"""Sets the block's own switch."""


def recompute_attention_only(block, x):
    block.attention.recompute = True
    return block(x)
