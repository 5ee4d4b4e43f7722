"""Knows no stage without saved bytes."""
def worth_swapping(stage, link, flops):
    
    extra = max(0.0, 2 * stage.saved_bytes / link - stage.hidden_flops / flops)
    again = stage.forward_flops / flops
    return "swap" if extra <= again else "recompute"
