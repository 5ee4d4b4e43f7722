"""Takes the whole copies for extra time."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = 2 * stage.saved_bytes / link
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"
