"""The moments are float32 beside float64 parameters. """
import torch


@torch.no_grad()
def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = {"t": 0, "m": torch.zeros(p.shape), "v": torch.zeros(p.shape)}
        s = state[i]
        s["t"] += 1
        t = s["t"]
        s["m"].mul_(beta1).add_(g, alpha=1 - beta1)
        s["v"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
        m_hat = s["m"] / (1 - beta1**t)
        v_hat = s["v"] / (1 - beta2**t)
        p -= lr * m_hat / (v_hat.sqrt() + eps)
