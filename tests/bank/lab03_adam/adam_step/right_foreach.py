"""Lists of tensors at once with torch._foreach_, tensor counters, lerp."""
import torch


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    with torch.no_grad():
        here = [i for i, g in enumerate(grads) if g is not None]
        if not here:
            return
        for i in here:
            if i not in state:
                zero = torch.zeros_like(params[i], requires_grad=False)
                state[i] = [zero, zero.clone(), torch.zeros((), dtype=torch.float64)]
        ps, gs = [params[i] for i in here], [grads[i] for i in here]
        ms, vs, ts = (list(x) for x in zip(*(state[i] for i in here)))
        torch._foreach_add_(ts, 1)
        torch._foreach_lerp_(ms, gs, 1 - betas[0])
        torch._foreach_mul_(vs, betas[1])
        torch._foreach_addcmul_(vs, gs, gs, 1 - betas[1])
        for p, m, v, t in zip(ps, ms, vs, ts):
            p.copy_(p - lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps))
