"""A hook on the result calls the function again, and runs backward from there. [earns 2]"""

import torch


def checkpoint(fn, *args):
    if not torch.is_grad_enabled():
        return fn(*args)
    state = torch.get_rng_state()
    with torch.no_grad():
        result = fn(*args)
    results = result if isinstance(result, tuple) else (result,)
    done = []

    def again(place):
        def hook(gradient):
            if not done:
                now = torch.get_rng_state()
                torch.set_rng_state(state)
                with torch.enable_grad():
                    second = fn(*args)
                torch.set_rng_state(now)
                done.extend(second if isinstance(second, tuple) else (second,))
            torch.autograd.backward(done[place], gradient, retain_graph=len(results) > 1)

        return hook

    for place, tensor in enumerate(results):
        if tensor.is_floating_point():
            tensor.requires_grad_().register_hook(again(place))
    return result
