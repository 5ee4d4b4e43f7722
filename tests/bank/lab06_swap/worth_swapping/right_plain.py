"""Two costs and a comparison."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if stage.saved_bytes == 0:
        return "keep"
    extra = max(0.0, 2 * stage.saved_bytes / link_bytes_per_s - stage.hidden_flops / flops_per_s)
    return "swap" if extra <= stage.forward_flops / flops_per_s else "recompute"
