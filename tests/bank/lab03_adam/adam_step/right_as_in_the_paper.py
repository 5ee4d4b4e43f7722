"""The paper's five lines, on .data; the state is keyed by the parameter itself."""


def adam_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    beta1, beta2 = betas
    for p, g in zip(params, grads):
        if g is not None:
            m, v, t = state.get(p, (0.0, 0.0, 0))
            t = t + 1
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            m_hat = m / (1 - beta1**t)
            v_hat = v / (1 - beta2**t)
            p.data -= lr * m_hat / (v_hat**0.5 + eps)
            state[p] = (m, v, t)
