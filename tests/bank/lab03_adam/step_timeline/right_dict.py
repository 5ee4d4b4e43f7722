"""What is live as a dict that events add to and take from."""


def step_timeline(param_bytes, activation_bytes, events):
    live = {"weights": param_bytes}
    saved = []
    out = []
    for event in events:
        match event:
            case "forward":
                saved.append(activation_bytes)
            case "backward":
                saved.pop()
                live.setdefault("grads", param_bytes)
            case "step":
                if "grads" in live:
                    live["m"] = live["v"] = param_bytes
            case "zero_grad(set_to_none=True)":
                live.pop("grads", None)
        out.append(sum(live.values()) + sum(saved))
    return out
