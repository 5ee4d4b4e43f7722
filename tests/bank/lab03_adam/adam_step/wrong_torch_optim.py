"""Lets torch do it, by the function that torch.optim.Adam calls."""
import torch
from torch.optim.adam import adam


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    here = [i for i, g in enumerate(grads) if g is not None]
    for i in here:
        if i not in state:
            state[i] = (torch.zeros_like(params[i]), torch.zeros_like(params[i]), torch.tensor(0.0))
    adam([params[i] for i in here], [grads[i] for i in here], [state[i][0] for i in here],
         [state[i][1] for i in here], [], [state[i][2] for i in here], foreach=False, amsgrad=False,
         beta1=betas[0], beta2=betas[1], lr=lr, weight_decay=0.0, eps=eps, maximize=False)
