"""The cheapest of a dict of costs; at a tie the first one, which is the swap."""
def worth_swapping(stage, link_bytes_per_s, flops_per_s):
    if not stage.saved_bytes:
        return "keep"
    copies = stage.saved_bytes / link_bytes_per_s * 2
    costs = {"swap": copies - stage.hidden_flops / flops_per_s, "recompute": 0.0}
    costs["swap"] = costs["swap"] if costs["swap"] > 0 else 0.0
    costs["recompute"] = stage.forward_flops / flops_per_s
    return min(costs, key=costs.get)
