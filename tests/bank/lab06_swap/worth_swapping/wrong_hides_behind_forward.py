"""Hides the copies behind the stage's own forward."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.forward_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"
