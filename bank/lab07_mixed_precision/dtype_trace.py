# %% right: hooks
"""Hooks on the module itself, and its state put back."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% right: deepcopy
"""Hooks on a copy, which is thrown away; dtypes written as torch.bfloat16."""
import copy

import torch


def dtype_trace(module, x, dtype):
    found, state = [], torch.get_rng_state()
    module = copy.deepcopy(module)
    for name, part in module.named_modules():
        if next(part.children(), None) is None:
            part.register_forward_hook(
                lambda part, inputs, output, name=name: found.append((name, str(output.dtype)))
            )
    with torch.autocast(x.device.type, dtype=dtype):
        module(x)
    torch.set_rng_state(state)
    return found


# %% right: wrapped_forward
"""Replaces forward on copies of the leaves; lists in place of tuples."""
import copy

import torch


def dtype_trace(module, x, dtype):
    found, module = [], copy.deepcopy(module)

    def noting(name, forward):
        def call(*inputs):
            output = forward(*inputs)
            found.append([name, {2: {torch.float16: "float16"}.get(output.dtype, "bfloat16")}.get(
                output.dtype.itemsize, "float32")])
            return output
        return call

    for name, part in module.named_modules():
        if len(list(part.modules())) == 1:
            part.forward = noting(name, part.forward)
    with torch.random.fork_rng():
        with torch.autocast(device_type=x.device.type, dtype=dtype):
            module(x)
    return found


# %% wrong: without_autocast
"""Runs in float32."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad():
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% wrong: always_bfloat16
"""Autocast to its default."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% wrong: low_for_all
"""Names the dtype that was asked for."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% wrong: containers_too
"""Hooks on all modules."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% wrong: each_once
"""A dict by name keeps one output of each."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return list(dict(found).items())


# %% wrong: registered_order
"""Sorted as the modules were made."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    order = list(names.values())
    return sorted(found, key=lambda entry: order.index(entry[0]))


# %% wrong: hooks_left
"""Removes no hook."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    module.load_state_dict(before)
    return found


# %% wrong: state_changed
"""Batch norm has seen one batch more."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    return found


# %% wrong: random_numbers_drawn
"""Dropout draws."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% wrong: mode_changed
"""Leaves evaluation mode switched on."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    module.eval()
    return found


# %% wrong: input_dtype
"""Notes what goes in."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((names[part], str(inputs[0].dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% wrong: class_names
"""Names classes."""
import copy

import torch


def dtype_trace(module, x, dtype):
    names, found, handles = {part: name for name, part in module.named_modules()}, [], []

    def note(part, inputs, output):
        found.append((type(part).__name__, str(output.dtype).removeprefix("torch.")))

    before = copy.deepcopy(module.state_dict())
    for part in names:
        if not list(part.children()):
            handles.append(part.register_forward_hook(note))
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(before)
    return found


# %% wrong: only_with_parameters
"""Leaves out what has no parameters."""
import copy

import torch


def dtype_trace(module, x, dtype):
    found, module = [], copy.deepcopy(module)
    for name, part in module.named_modules():
        if not list(part.children()) and list(part.parameters()):
            part.register_forward_hook(
                lambda part, inputs, output, name=name: found.append((name, str(output.dtype)[6:]))
            )
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    return found


# %% wrong: no_names_of_dtypes
"""Lists dtypes themselves, and not their names."""
import copy

import torch


def dtype_trace(module, x, dtype):
    found, module = [], copy.deepcopy(module)
    for name, part in module.named_modules():
        if not list(part.children()):
            part.register_forward_hook(
                lambda part, inputs, output, name=name: found.append((name, output.dtype))
            )
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    return found


# %% wrong: seeded
"""Sets the seed to what it was at first."""

import copy

import torch
from torch import nn


def dtype_trace(module, x, dtype):
    found = []
    module = copy.deepcopy(module)
    for name, part in module.named_modules():
        if not list(part.children()):

            def note(part, inputs, output, name=name):
                found.append((name, str(output.dtype).removeprefix("torch.")))

            part.register_forward_hook(note)
    with torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    torch.manual_seed(torch.initial_seed())
    return found


# %% wrong: no_repeats_in_a_row
"""Leaves out an entry that equals the one before."""
import copy, torch
def dtype_trace(module, x, dtype):
    found = []
    module = copy.deepcopy(module)
    for name, part in module.named_modules():
        if not list(part.children()):
            def note(part, inputs, output, name=name):
                e = (name, str(output.dtype).removeprefix('torch.'))
                if not found or found[-1] != e: found.append(e)
            part.register_forward_hook(note)
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    return found


# %% wrong: in_evaluation_mode
"""Runs the copy in evaluation mode, whatever the module's mode."""
import copy, torch
def dtype_trace(module, x, dtype):
    found = []
    module = copy.deepcopy(module)
    module.eval()
    for name, part in module.named_modules():
        if not list(part.children()):
            def note(part, inputs, output, name=name):
                found.append((name, str(output.dtype).removeprefix('torch.')))
            part.register_forward_hook(note)
    with torch.random.fork_rng(), torch.no_grad(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    return found


# %% right: restored_by_hand
"""Runs the module itself, and puts back its state, the RNG's and the hooks."""
import torch
def dtype_trace(module, x, dtype):
    seen, handles = [], []
    saved = {k: v.clone() for k, v in module.state_dict().items()}
    state = torch.get_rng_state()
    for name, part in module.named_modules():
        if next(part.children(), None) is None:
            handles.append(part.register_forward_hook(lambda m, i, o, n=name: seen.append((n, str(o.dtype)[6:]))))
    try:
        with torch.no_grad(), torch.autocast(device_type=x.device.type, dtype=dtype):
            module(x)
    finally:
        for h in handles: h.remove()
        module.load_state_dict(saved)
        torch.set_rng_state(state)
    return seen


# %% wrong: others_hooks
"""Clears all hooks of the leaves at the end, other people's too."""

import copy

import torch


def dtype_trace(module, x, dtype):
    found = []
    state = copy.deepcopy(module.state_dict())
    leaves = {part: name for name, part in module.named_modules() if not list(part.children())}
    for part in leaves:
        part.register_forward_hook(
            lambda part, inputs, output: found.append((leaves[part], str(output.dtype)[6:]))
        )
    with torch.no_grad(), torch.random.fork_rng(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for part in leaves:
        part._forward_hooks.clear()
    module.load_state_dict(state)
    return found


# %% wrong: parameters_frozen
"""Switches gradients off on the module, in place of no_grad."""

import copy

import torch


def dtype_trace(module, x, dtype):
    twin = copy.deepcopy(module.requires_grad_(False))
    found = []
    for name, part in twin.named_modules():
        if not list(part.children()):
            part.register_forward_hook(
                lambda part, inputs, output, name=name: found.append((name, str(output.dtype)[6:]))
            )
    with torch.random.fork_rng(), torch.autocast(x.device.type, dtype=dtype):
        twin(x)
    return found


# %% wrong: last_of_a_name
"""Names leaves by the last two parts of their names."""

import copy

import torch


def dtype_trace(module, x, dtype):
    twin, found = copy.deepcopy(module), []

    def hook_of(name):
        def note(part, inputs, output):
            found.append((".".join(name.split(".")[-2:]), str(output.dtype)[6:]))

        return note

    for name, part in twin.named_modules():
        if not list(part.children()):
            part.register_forward_hook(hook_of(name))
    with torch.no_grad(), torch.random.fork_rng(), torch.autocast(x.device.type, dtype=dtype):
        twin(x)
    return found


# %% wrong: one_mode_for_all
"""Puts each layer into the mode of the whole, as `train` does."""

import copy

import torch


def dtype_trace(module, x, dtype):
    training, state = module.training, copy.deepcopy(module.state_dict())
    found, handles = [], []
    for name, part in module.named_modules():
        if not list(part.children()):
            handles.append(
                part.register_forward_hook(
                    lambda part, inputs, output, name=name: found.append((name, str(output.dtype)))
                )
            )
    with torch.no_grad(), torch.random.fork_rng(), torch.autocast(x.device.type, dtype=dtype):
        module(x)
    for handle in handles:
        handle.remove()
    module.load_state_dict(state)
    module.train(training)
    return found
