"""Takes the distance of the two times, so that well-hidden copies look long."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = abs(2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"
