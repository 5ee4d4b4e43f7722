"""Divides the hidden operations by the link's rate."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, (2 * stage.saved_bytes - stage.hidden_flops) / link)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"
