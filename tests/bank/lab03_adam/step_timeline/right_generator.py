"""A generator that yields the total, with conditions written as products."""


def levels(p, a, events):
    waiting, has_gradients, has_state = 0, False, False
    for event in events:
        waiting += (event == "forward") - (event == "backward")
        has_gradients = (has_gradients or event == "backward") and "True" not in event
        has_state = has_state or (event == "step" and has_gradients)
        yield p * (1 + has_gradients + 2 * has_state) + a * waiting


def step_timeline(param_bytes, activation_bytes, events):
    return list(levels(param_bytes, activation_bytes, events))
