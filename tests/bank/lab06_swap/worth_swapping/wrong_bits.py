"""Turns bytes into bits."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * 8 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"
