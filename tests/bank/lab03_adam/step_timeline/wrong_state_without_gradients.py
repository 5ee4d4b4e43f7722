"""A step without gradients makes the moments."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = 0
    s = 0
    live = []
    for event in events:
        if event == "forward":
            a += activation_bytes
        elif event == "backward":
            a -= activation_bytes
            g = param_bytes
        elif event == "step":
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live
