"""Always recomputes."""
def worth_swapping(stage, link, flops):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "recompute"
