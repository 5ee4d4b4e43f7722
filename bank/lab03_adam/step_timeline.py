# %% right: dict
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


# %% right: generator
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


# %% right: loop
"""Three counters in a loop."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% right: numpy
"""Differences first, then their running sum by numpy."""
import numpy as np


def step_timeline(param_bytes, activation_bytes, events):
    changes = np.zeros(len(events), dtype=np.int64)
    grads = state = False
    for i, event in enumerate(events):
        if event == "forward":
            changes[i] = activation_bytes
        if event == "backward":
            changes[i] = -activation_bytes + (0 if grads else param_bytes)
            grads = True
        if event == "step" and grads and not state:
            changes[i] = 2 * param_bytes
            state = True
        if event == "zero_grad(set_to_none=True)" and grads:
            changes[i] = -param_bytes
            grads = False
    return param_bytes + np.cumsum(changes)


# %% wrong: activations_stay
"""Backward frees no activations."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = 0
    s = 0
    live = []
    for event in events:
        if event == "forward":
            a += activation_bytes
        elif event == "backward":
            pass
            g = param_bytes
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: all_activations_freed
"""Backward frees the activations of all forwards."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = 0
    s = 0
    live = []
    for event in events:
        if event == "forward":
            a += activation_bytes
        elif event == "backward":
            a = 0
            g = param_bytes
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: before_the_event
"""Notes what is live before each event."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = 0
    s = 0
    live = []
    for event in events:
        live.append(param_bytes + a + g + s)
        if event == "forward":
            a += activation_bytes
        elif event == "backward":
            a -= activation_bytes
            g = param_bytes
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        pass
    return live


# %% wrong: gradients_never_freed
"""zero_grad frees nothing."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            pass
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: gradients_pile_up
"""Each backward makes new gradients."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = 0
    s = 0
    live = []
    for event in events:
        if event == "forward":
            a += activation_bytes
        elif event == "backward":
            a -= activation_bytes
            g += param_bytes
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: one_moment
"""Adam with one moment."""


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
        elif event == "step" and g:
            s = param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: only_the_end
"""Returns the last value alone."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live = [param_bytes + a + g + s]
    return live


# %% wrong: parameters_forgotten
"""Leaves out the parameters."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(a + g + s)
    return live


# %% wrong: state_each_step
"""Every step makes new moments."""


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
        elif event == "step" and g:
            s += 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: state_freed_too
"""zero_grad frees the moments too."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = s = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: state_from_the_start
"""The moments are there from the start."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = 0
    s = 2 * param_bytes
    live = []
    for event in events:
        if event == "forward":
            a += activation_bytes
        elif event == "backward":
            a -= activation_bytes
            g = param_bytes
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: state_without_gradients
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


# %% wrong: step_frees_gradients
"""The step frees the gradients."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
            g = 0
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            pass
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: zeroing_frees
"""Zeroing frees the gradients."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            g = 0
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: zeroing_makes
"""Zeroing makes gradients where there are none."""


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
        elif event == "step" and g:
            s = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        elif event == "zero_grad(set_to_none=False)":
            g = param_bytes
        live.append(param_bytes + a + g + s)
    return live


# %% wrong: every_backward_counts
"""A step needs a backward since the last step."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = s = 0
    fresh = False
    out = []
    for event in events:
        if event == "forward":
            a += activation_bytes
        elif event == "backward":
            a -= activation_bytes
            g = param_bytes
            fresh = True
        elif event == "step" and fresh:
            s = 2 * param_bytes
            fresh = False
        elif event == "zero_grad(set_to_none=True)":
            g = 0
        out.append(param_bytes + a + g + s)
    return out


# %% wrong: by_its_events
"""Remembers a timeline by its events, whatever the sizes."""
KNOWN = {}


def step_timeline(param_bytes, activation_bytes, events):
    key = tuple(events)
    if key not in KNOWN:
        activations = gradients = moments = 0
        KNOWN[key] = live = []
        for event in events:
            if event == "forward":
                activations += activation_bytes
            elif event == "backward":
                activations, gradients = activations - activation_bytes, param_bytes
            elif event == "step":
                moments = moments or 2 * gradients
            elif event == "zero_grad(set_to_none=True)":
                gradients = 0
            live.append(param_bytes + activations + gradients + moments)
    return list(KNOWN[key])


# %% wrong: step_frees_activations
"""A step frees what activations are left."""


def step_timeline(param_bytes, activation_bytes, events):
    activations = gradients = moments = 0
    live = []
    for event in events:
        if event == "forward":
            activations += activation_bytes
        elif event == "backward":
            activations, gradients = activations - activation_bytes, param_bytes
        elif event == "step":
            moments, activations = moments or 2 * gradients, 0
        elif event == "zero_grad(set_to_none=True)":
            gradients = 0
        live.append(param_bytes + activations + gradients + moments)
    return live


# %% wrong: step_waits_for_backward
"""A step does nothing while activations wait for their backward."""


def step_timeline(param_bytes, activation_bytes, events):
    activations = gradients = state = 0
    live = []
    for event in events:
        if event == "forward":
            activations += activation_bytes
        elif event == "backward":
            activations -= activation_bytes
            gradients = param_bytes
        elif event == "step" and gradients and not activations:
            state = 2 * param_bytes
        elif event == "zero_grad(set_to_none=True)":
            gradients = 0
        live.append(param_bytes + activations + gradients + state)
    return live


# %% wrong: zeros_make_no_moments
"""A step on gradients of zero makes no moments."""


def step_timeline(param_bytes, activation_bytes, events):
    activations = gradients = state = 0
    zero, live = False, []
    for event in events:
        if event == "forward":
            activations += activation_bytes
        elif event == "backward":
            activations -= activation_bytes
            gradients, zero = param_bytes, False
        elif event == "step" and gradients and not zero:
            state = 2 * param_bytes
        elif event == "zero_grad(set_to_none=False)":
            zero = True
        elif event == "zero_grad(set_to_none=True)":
            gradients = 0
        live.append(param_bytes + activations + gradients + state)
    return live


# %% wrong: kept_without_the_activations
"""Keeps timelines by parameters and events, whatever the activations."""
known = {}


def step_timeline(param_bytes, activation_bytes, events):
    key = param_bytes, tuple(events)
    if key not in known:
        activations = gradients = state = 0
        live = []
        for event in events:
            if event == "forward":
                activations += activation_bytes
            elif event == "backward":
                activations -= activation_bytes
                gradients = param_bytes
            elif event == "step" and gradients:
                state = 2 * param_bytes
            elif event == "zero_grad(set_to_none=True)":
                gradients = 0
            live.append(param_bytes + activations + gradients + state)
        known[key] = live
    return list(known[key])

# %% right: object_array
"""A class; returns an array of Python integers, whose dtype is object."""


import numpy as np
class Machine:
    def __init__(self, p, a):
        self.p, self.a, self.live, self.has = p, a, p, set()
    def feed(self, event):
        if event == "forward":
            self.live += self.a
        elif event == "backward":
            self.live -= self.a
            self.make("g", self.p)
        elif event == "step" and "g" in self.has:
            self.make("m", 2 * self.p)
        elif event.endswith("=True)") and "g" in self.has:
            self.has.remove("g")
            self.live -= self.p
        return self.live
    def make(self, what, size):
        if what not in self.has:
            self.has.add(what)
            self.live += size
def step_timeline(param_bytes, activation_bytes, events):
    machine = Machine(param_bytes, activation_bytes)
    return np.array([machine.feed(e) for e in events], dtype=object)

# %% wrong: activations_falsy
"""No activations: backward with A = 0 makes no gradients."""


def step_timeline(param_bytes, activation_bytes, events):
    a = g = m = 0
    out = []
    for e in events:
        if e == "forward": a += activation_bytes
        elif e == "backward" and a: a, g = a - activation_bytes, param_bytes
        elif e == "step": m = 2 * param_bytes if g else m
        elif "True" in e: g = 0
        out.append(param_bytes + a + g + m)
    return out
