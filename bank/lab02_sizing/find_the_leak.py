# %% right: item
"""Takes the number; a batch's graph dies when the next loss takes its name."""
from torch.nn import functional as F


def evaluate(model, batches):
    losses = []
    for x, targets in batches:
        loss = F.cross_entropy(model(x), targets)
        losses.append(loss.item())
    return losses


# %% right: no_grad
"""Makes no graph at all, and returns tensors."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    losses = []
    with torch.no_grad():
        for x, targets in batches:
            losses.append(F.cross_entropy(model(x), targets))
    return losses


# %% right: decorated
"""inference_mode as a decorator."""
import torch


@torch.inference_mode()
def evaluate(model, batches):
    criterion = torch.nn.CrossEntropyLoss()
    return [criterion(model(x), targets) for x, targets in batches]


# %% right: detach
"""Detached losses keep four bytes each."""
from torch.nn import functional as F


def evaluate(model, batches):
    return [F.cross_entropy(model(x), targets).detach() for x, targets in batches]


# %% right: one_tensor
"""Stacks detached losses into one tensor."""
import torch


def evaluate(model, batches):
    losses = torch.empty(0)
    for x, targets in batches:
        logits = model(x)
        loss = torch.logsumexp(logits, 1) - logits.gather(1, targets[:, None])[:, 0]
        losses = torch.cat([losses, loss.mean().detach()[None]])
    return losses


# %% wrong: graphs_stay
"""Handed in as it was given."""
from torch.nn import functional as F


def evaluate(model, batches):
    losses = []
    for x, targets in batches:
        losses.append(F.cross_entropy(model(x), targets))
    return losses


# %% wrong: eval_mode
"""eval() changes dropout and batch norm, not the graph."""
from torch.nn import functional as F


def evaluate(model, batches):
    was = model.training
    model.eval()
    losses = [F.cross_entropy(model(x), targets) for x, targets in batches]
    model.train(was)
    return losses


# %% wrong: deletes_the_batch
"""`del` removes names; the losses still hold their graphs."""
import gc

from torch.nn import functional as F


def evaluate(model, batches):
    losses = []
    for x, targets in batches:
        logits = model(x)
        losses.append(F.cross_entropy(logits, targets))
        del x, targets, logits
        gc.collect()
    return losses


# %% wrong: detached_at_the_end
"""Detaches once all graphs have been built."""
from torch.nn import functional as F


def evaluate(model, batches):
    losses = [F.cross_entropy(model(x), targets) for x, targets in batches]
    return [loss.detach() for loss in losses]


# %% wrong: clones
"""A clone has a graph of its own."""
from torch.nn import functional as F


def evaluate(model, batches):
    return [F.cross_entropy(model(x), targets).clone() for x, targets in batches]


# %% wrong: batches_stay
"""No graph, but all batches and all logits at once."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    with torch.no_grad():
        outputs = [(x, model(x), targets) for x, targets in batches]
        return [F.cross_entropy(logits, targets).item() for _, logits, targets in outputs]


# %% wrong: backward
"""Frees the graph by running backward, and leaves gradients behind."""
from torch.nn import functional as F


def evaluate(model, batches):
    losses = []
    for x, targets in batches:
        loss = F.cross_entropy(model(x), targets)
        loss.backward()
        losses.append(loss.detach())
    return losses


# %% wrong: mean_only
"""Returns the mean of all losses."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    with torch.no_grad():
        losses = [F.cross_entropy(model(x), targets).item() for x, targets in batches]
    return [sum(losses) / len(losses)]


# %% wrong: running_sum
"""Appends the sum so far."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    total, sums = 0.0, []
    with torch.no_grad():
        for x, targets in batches:
            total += F.cross_entropy(model(x), targets).item()
            sums.append(total)
    return sums


# %% wrong: all_batches_in_a_list
"""Makes no graph, but a list of the batches holds all inputs at once."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    batches = list(batches)
    with torch.no_grad():
        return [F.cross_entropy(model(x), targets).item() for x, targets in batches]


# %% wrong: frozen
"""Switches the parameters' gradients off for good."""
from torch.nn import functional as F


def evaluate(model, batches):
    model.requires_grad_(False)
    return [F.cross_entropy(model(x), targets).item() for x, targets in batches]


# %% wrong: left_in_eval
"""Switches to evaluation mode and doesn't switch back."""
from torch.nn import functional as F


def evaluate(model, batches):
    model.eval()
    return [F.cross_entropy(model(x), targets).item() for x, targets in batches]


# %% wrong: gradients_left_off
"""Switches gradients off for everybody, and never on again."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    torch.set_grad_enabled(False)
    return [F.cross_entropy(model(x), targets).item() for x, targets in batches]


# %% right: sums_by_hand
"""Computes the loss without F.cross_entropy, and returns a tuple of numbers."""
import torch


def evaluate(model, batches):
    losses = []
    for x, targets in batches:
        with torch.no_grad():
            logits = model(x)
            each = logits.logsumexp(1) - logits[torch.arange(len(targets)), targets]
            losses.append(float(each.mean()))
    return tuple(losses)


# %% wrong: parts_left_in_eval
"""Switches the model's modules to evaluation, but not the model itself."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    for module in model:
        module.eval()
    with torch.no_grad():
        return [F.cross_entropy(model(x), targets).item() for x, targets in batches]


# %% wrong: weights_changed
"""Rounds the weights to bfloat16, once it is done."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    with torch.no_grad():
        losses = [F.cross_entropy(model(x), targets).item() for x, targets in batches]
        for parameter in model.parameters():
            parameter.copy_(parameter.bfloat16())
    return losses


# %% wrong: left_in_training
"""Ends in training mode, whatever the mode was."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        losses = [F.cross_entropy(model(x), t).item() for x, t in batches]
    model.train()
    return losses


# %% wrong: default_list
"""The list of losses is a default: a second call goes on with it."""
import torch
from torch.nn import functional as F


def evaluate(model, batches, losses=[]):
    with torch.no_grad():
        for x, targets in batches:
            losses.append(F.cross_entropy(model(x), targets).item())
    return losses


# %% wrong: every_second_graph_stays
"""Detaches every second loss."""
from torch.nn import functional as F


def evaluate(model, batches):
    losses = []
    for i, (x, t) in enumerate(batches):
        loss = F.cross_entropy(model(x), t)
        losses.append(loss.detach() if i % 2 else loss)
    return losses


# %% right: eval_and_restored
"""Every module's mode is restored, in finally."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.inference_mode():
            return [F.cross_entropy(model(x), t).item() for x, t in batches]
    finally:
        for module, mode in modes.items():
            module.training = mode


# %% right: generator
"""A generator yields each loss."""
import torch
from torch.nn import functional as F


def evaluate(model, batches):
    for x, targets in batches:
        with torch.no_grad():
            loss = F.cross_entropy(model(x), targets).item()
        del x, targets
        yield loss


# %% wrong: thawed
"""Makes all parameters trainable at the end, one that was frozen before too."""
from torch.nn import functional as F


def evaluate(model, batches):
    model.requires_grad_(False)
    losses = [F.cross_entropy(model(x), targets).item() for x, targets in batches]
    model.requires_grad_(True)
    return losses


# %% right: thaws_what_it_froze
"""Freezes the parameters for a while, and remembers which of them were trainable."""
from torch.nn import functional as F


def evaluate(model, batches):
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in trainable:
        parameter.requires_grad_(False)
    losses = [F.cross_entropy(model(x), targets).item() for x, targets in batches]
    for parameter in trainable:
        parameter.requires_grad_(True)
    return losses
