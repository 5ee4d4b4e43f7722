# %% right: root_of_v
"""Linear codes of m and of the root of v."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% right: block_by_block
"""A loop over blocks, and a counter a tensor."""
import torch


@torch.no_grad()
def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    """The moments' codes are split into blocks with chunk-wise Python loops."""
    for number, (param, grad) in enumerate(zip(params, grads)):
        kept = state.setdefault(number, {"t": 0, "blocks": None})
        kept["t"] += 1
        flat, gradient = param.view(-1), grad.reshape(-1)
        starts = range(0, flat.numel(), 256)
        if kept["blocks"] is None:
            kept["m"] = torch.zeros(flat.numel(), dtype=torch.int8)
            kept["r"] = torch.zeros(flat.numel(), dtype=torch.uint8)
            kept["blocks"] = torch.zeros(len(starts), 2)
        for block, first in enumerate(starts):
            part = slice(first, first + 256)
            steps = kept["blocks"][block]
            m = kept["m"][part] * steps[0]
            v = (kept["r"][part] * steps[1]) ** 2
            m = torch.lerp(gradient[part], m, betas[0])
            v = torch.lerp(gradient[part] ** 2, v, betas[1])
            unbiased = (v / (1 - betas[1] ** kept["t"])).sqrt() + eps
            flat[part].sub_(lr / (1 - betas[0] ** kept["t"]) * m / unbiased)
            root = v.sqrt()
            steps[0] = m.abs().max() / 127 + 1e-30
            steps[1] = root.max() / 255 + 1e-30
            kept["m"][part] = torch.round(m / steps[0]).to(torch.int8)
            kept["r"][part] = torch.round(root / steps[1]).to(torch.uint8)


# %% right: cubes
"""Codes that stand for cubes."""
import torch

CURVE = 3.0  # codes stand for powers, so that small values have more of them


def _pack(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = blocks.abs().amax(1, keepdim=True).clamp(min=1e-30)
    share = blocks / largest
    codes = (share.sign() * share.abs() ** (1 / CURVE) * top).round()
    kind = torch.int8 if top == 127 else torch.uint8
    return codes.to(kind).flatten()[: x.numel()].clone(), largest.flatten()


def _unpack(codes, largest, top, shape):
    share = codes.float() / top
    values = share.sign() * share.abs() ** CURVE
    return (values * largest.repeat_interleave(256)[: len(codes)]).view(shape)


@torch.no_grad()
def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        m, v = torch.zeros_like(g), torch.zeros_like(g)
        if t > 1:
            m = _unpack(*state["m", i], 127, p.shape)
            v = _unpack(*state["v", i], 255, p.shape)
        m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
        v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
        state["m", i], state["v", i] = _pack(m, 127), _pack(v, 255)
        p.sub_(lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps))


# %% wrong: no_bias_correction
"""Moments as they are."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        with torch.no_grad():
            param -= lr * m / (v.sqrt() + eps)


# %% wrong: no_second_moment
"""Momentum alone."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m


# %% wrong: state_forgotten
"""Never decodes."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if False:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% wrong: gradients_changed
"""Squares the gradient in place."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad.square_()
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% wrong: moments_in_float32
"""Adam, as torch has it."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, v = state[i]
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = m, v
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% wrong: more_than_codes
"""Codes of m, and v in float32."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            kept, v = state[i]
            m = _decode(*kept, param.shape)
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), v
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% wrong: linear_second_moment
"""Linear codes of v: small ones become 0, and their steps huge."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v, 255)
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% wrong: kept_elsewhere
"""Moments in float32 in a global, and codes for show."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


MOMENTS = {}


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, v = MOMENTS[id(param)]
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        MOMENTS[id(param)] = m, v
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% wrong: steps_uphill
"""Adds."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param += lr * m / (v.sqrt() + eps)


# %% right: by_index
"""State by index, a step counter for all."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        p.sub_(up.view_as(p))


# %% right: by_parameter
"""State by parameter; the moments used are the decoded ones."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if p in state:
            m, v = dec(*state[p][0]), dec(*state[p][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[p] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        p.sub_(up.view_as(p))


# %% right: counter_tensor
"""A counter tensor a parameter."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        c = state.setdefault(("t", i), torch.zeros(1, dtype=torch.int64))
        c += 1
        t = c.item()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        p.sub_(up.view_as(p))


# %% wrong: options_ignored
"""betas are the defaults, whatever the caller passes."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = 0.9, 0.999
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        p.sub_(up.view_as(p))


# %% wrong: eps_ignored
"""eps is 1e-8 always."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + 1e-8)
        p.sub_(up.view_as(p))


# %% wrong: eps_inside
"""eps within the root."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / (v / (1 - b2**t) + eps).sqrt()
        p.sub_(up.view_as(p))


# %% wrong: lr_default
"""lr is 1e-3 always."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = 1e-3 * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        p.sub_(up.view_as(p))


# %% wrong: global_state
"""The state is a global dict, by index: two trainings share it."""

import torch

_state = {}


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    caller, state = state, _state
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        caller[i] = state[i]
        p.sub_(up.view_as(p))


# %% wrong: one_step_a_tensor
"""One step for the whole tensor."""

import torch


def enc(x, top):
    blocks = x.view(1, -1)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten()[: x.numel()].to(
        torch.int8 if top < 128 else torch.uint8
    ), s


def dec(codes, s):
    return codes.float().view(1, -1).mul(s).flatten()[: len(codes)]


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0]), dec(*state[i][1]) ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        p.sub_(up.view_as(p))


# %% wrong: padded_codes
"""Codes are kept padded to 256."""

import torch


def enc(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    s = blocks.abs().amax(1, keepdim=True) / top
    s = torch.where(s == 0, 1.0, s)
    return (blocks / s).round().flatten().to(torch.int8 if top < 128 else torch.uint8), s


def dec(codes, s, n=None):
    return (
        torch.nn.functional.pad(codes.float(), (0, -len(codes) % 256))
        .view(-1, 256)
        .mul(s)
        .flatten()[: len(codes)]
    )


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        if i in state:
            m, v = dec(*state[i][0])[: len(g)], dec(*state[i][1])[: len(g)] ** 2
        else:
            m, v = torch.zeros_like(g), torch.zeros_like(g)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = enc(m, 127), enc(v.sqrt(), 255)
        up = lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps)
        p.sub_(up.view_as(p))


# %% wrong: other_defaults
"""Right but for the default of beta_2."""
import torch


def _encode(x, top):
    rows = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = rows.abs().amax(1)
    step = torch.where(largest == 0, 1.0, largest / top)
    codes = (rows / step[:, None]).round().flatten()[: x.numel()]
    return codes.to(torch.int8 if top == 127 else torch.uint8), step


def _decode(codes, step, shape):
    return (codes * step.repeat_interleave(256)[: len(codes)]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.99), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (param, grad) in enumerate(zip(params, grads)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (_decode(*kept, param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = _encode(m, 127), _encode(v.sqrt(), 255)
        with torch.no_grad():
            m = m / (1 - betas[0] ** t)
            v = v / (1 - betas[1] ** t)
            param -= lr * m / (v.sqrt() + eps)


# %% right: objects_with_arrays
"""Moments are objects of a class, with arrays of numpy; a new list replaces the old one."""
import numpy as np
import torch


class Moment:
    def __init__(self, values, top, kind):
        blocks = np.pad(values, (0, -len(values) % 256)).reshape(-1, 256)
        self.steps = (np.abs(blocks).max(1) / top).astype(np.float32)
        codes = np.rint(blocks / np.where(self.steps == 0, 1, self.steps)[:, None])
        self.codes = codes.astype(kind).ravel()[: len(values)].copy()

    def decode(self):
        return self.codes * np.repeat(self.steps, 256)[: len(self.codes)]


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    t = state["t"] = state.get("t", 0) + 1
    (b1, b2), new = betas, []
    for i, (param, grad) in enumerate(zip(params, grads)):
        g, m, v = grad.numpy().ravel(), 0.0, 0.0
        if "kept" in state:
            m, v = state["kept"][i][0].decode(), state["kept"][i][1].decode() ** 2
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        new.append((Moment(m, 127, np.int8), Moment(np.sqrt(v), 255, np.uint8)))
        change = lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
        param -= torch.from_numpy(change.astype(np.float32)).view(param.shape)
    state["kept"] = new


# %% wrong: block_128
"""Blocks of 128: twice as many steps."""

import torch
from torch.nn import functional as F


def enc(x, top, dtype):
    flat = x.reshape(-1)
    n = flat.numel()
    b = F.pad(flat, (0, -n % 128)).view(-1, 128)
    s = b.abs().amax(1, keepdim=True) / top
    s[s == 0] = 1
    return (b / s).round().view(-1)[:n].to(dtype).clone(), s.view(-1)


def dec(c, s, shape):
    return (c.float() * s.repeat_interleave(128)[: c.numel()]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    state["step"] = state.get("step", 0) + 1
    t = state["step"]
    for i, (p, g) in enumerate(zip(params, grads)):
        if i in state:
            m = dec(*state[i][0], p.shape)
            v = dec(*state[i][1], p.shape).square()
        else:
            m, v = torch.zeros_like(p), torch.zeros_like(p)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = (enc(m, 127, torch.int8), enc(v.sqrt(), 255, torch.uint8))
        p.sub_(lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps))


# %% wrong: default_lr
"""lr=1e-2 by default."""

import torch
from torch.nn import functional as F


def enc(x, top, dtype):
    flat = x.reshape(-1)
    n = flat.numel()
    b = F.pad(flat, (0, -n % 256)).view(-1, 256)
    s = b.abs().amax(1, keepdim=True) / top
    s[s == 0] = 1
    return (b / s).round().view(-1)[:n].to(dtype).clone(), s.view(-1)


def dec(c, s, shape):
    return (c.float() * s.repeat_interleave(256)[: c.numel()]).view(shape)


def adam8bit_step(params, grads, state, lr=1e-2, betas=(0.9, 0.999), eps=1e-8):
    b1, b2 = betas
    state["step"] = state.get("step", 0) + 1
    t = state["step"]
    for i, (p, g) in enumerate(zip(params, grads)):
        if i in state:
            m = dec(*state[i][0], p.shape)
            v = dec(*state[i][1], p.shape).square()
        else:
            m, v = torch.zeros_like(p), torch.zeros_like(p)
        m = b1 * m + (1 - b1) * g
        v = b2 * v + (1 - b2) * g * g
        state[i] = (enc(m, 127, torch.int8), enc(v.sqrt(), 255, torch.uint8))
        p.sub_(lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps))


# %% right: slots_dataclass
"""Moments in a dataclass with slots."""
import torch


def encode_blocks(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = blocks.abs().amax(dim=1, keepdim=True)
    step = torch.where(largest == 0, 1.0, largest / top)
    dtype = torch.int8 if top == 127 else torch.uint8
    return (blocks / step).round().flatten()[: x.numel()].to(dtype), step.flatten()


def decode_blocks(codes, step):
    return codes * step.repeat_interleave(256)[: len(codes)]


from dataclasses import dataclass


@dataclass(slots=True)
class Moments:
    m: torch.Tensor
    m_step: torch.Tensor
    root: torch.Tensor
    root_step: torch.Tensor
    t: int = 0


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8) -> None:
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        kept = state.get(i)
        if kept is None:
            m = v = torch.zeros_like(param)
            t = 1
        else:
            m = decode_blocks(kept.m, kept.m_step).view_as(param)
            v = decode_blocks(kept.root, kept.root_step).view_as(param).square()
            t = kept.t + 1
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad.square()
        state[i] = Moments(*encode_blocks(m, 127), *encode_blocks(v.sqrt(), 255), t)
        param.sub_(lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps))


# %% right: deque
"""Moments in a queue."""
import torch


def encode_blocks(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = blocks.abs().amax(dim=1, keepdim=True)
    step = torch.where(largest == 0, 1.0, largest / top)
    dtype = torch.int8 if top == 127 else torch.uint8
    return (blocks / step).round().flatten()[: x.numel()].to(dtype), step.flatten()


def decode_blocks(codes, step):
    return codes * step.repeat_interleave(256)[: len(codes)]


from collections import deque


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    queue = state.setdefault("queue", deque())
    first = not queue
    t = state["t"] = 1 if first else state["t"] + 1
    for p, g in zip(params, grads):
        m, v = torch.zeros_like(p), torch.zeros_like(p)
        if not first:
            old_m, old_root = queue.popleft()
            m, v = decode_blocks(*old_m).view_as(p), decode_blocks(*old_root).view_as(p) ** 2
        m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
        v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
        queue.append((encode_blocks(m, 127), encode_blocks(v.sqrt(), 255)))
        p.addcdiv_(m / (1 - betas[0] ** t), (v / (1 - betas[1] ** t)).sqrt_().add_(eps), value=-lr)


# %% right: bytes_objects
"""Codes and steps are bytes objects."""
import numpy as np
import torch


def _encode(x, top, kind):
    rows = np.pad(x, (0, -x.size % 256)).reshape(-1, 256)
    step = (np.abs(rows).max(1) / np.float32(top)).astype(np.float32)
    step[step == 0] = 1
    return np.rint(rows / step[:, None]).ravel()[: x.size].astype(kind).tobytes(), step.tobytes()


def _decode(codes, step, kind):
    codes = np.frombuffer(codes, kind)
    return codes * np.repeat(np.frombuffer(step, np.float32), 256)[: codes.size]


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        g = g.numpy().ravel()
        m = v = np.zeros_like(g)
        if t > 1:
            m, v = _decode(*state["m", i], np.int8), _decode(*state["v", i], np.uint8) ** 2
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        state["m", i], state["v", i] = _encode(m, 127, np.int8), _encode(np.sqrt(v), 255, np.uint8)
        change = lr * m / (1 - betas[0] ** t) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
        p -= torch.from_numpy(change.astype(np.float32)).view_as(p)


# %% right: structured_array
"""Pairs of codes in numpy's structured arrays."""
import numpy as np
import torch

PAIR = np.dtype([("m", "i1"), ("root", "u1")])


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        n, flat = p.numel(), g.reshape(-1).numpy()
        if t == 1:
            state[i] = np.zeros(n, PAIR), np.ones((2, -(-n // 256)), np.float32)
        codes, steps = state[i]
        spread = np.repeat(steps, 256, axis=1)[:, :n]
        m = codes["m"] * spread[0] * betas[0] + (1 - betas[0]) * flat
        v = (codes["root"] * spread[1]) ** 2 * betas[1] + (1 - betas[1]) * flat**2
        for row, (name, values, top) in enumerate((("m", m, 127), ("root", np.sqrt(v), 255))):
            largest = np.maximum.reduceat(np.abs(values), np.arange(0, n, 256))
            steps[row] = np.where(largest > 0, largest / top, 1)
            codes[name] = np.rint(values / np.repeat(steps[row], 256)[:n])
        m, v = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
        p -= torch.from_numpy((lr * m / (np.sqrt(v) + eps)).astype(np.float32)).view(p.shape)


# %% wrong: outside_of_state
"""The number of steps is a global."""
import torch


def encode_blocks(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = blocks.abs().amax(dim=1, keepdim=True)
    step = torch.where(largest == 0, 1.0, largest / top)
    dtype = torch.int8 if top == 127 else torch.uint8
    return (blocks / step).round().flatten()[: x.numel()].to(dtype), step.flatten()


def decode_blocks(codes, step):
    return codes * step.repeat_interleave(256)[: len(codes)]

_t = 0


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    global _t
    t = _t = _t + 1
    for i, (param, grad) in enumerate(zip(params, grads, strict=True)):
        m = v = torch.zeros_like(param)
        if i in state:
            m, root = (decode_blocks(*kept).view(param.shape) for kept in state[i])
            v = root**2
        m = betas[0] * m + (1 - betas[0]) * grad
        v = betas[1] * v + (1 - betas[1]) * grad**2
        state[i] = encode_blocks(m, 127), encode_blocks(v.sqrt(), 255)
        m, v = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
        param -= lr * m / (v.sqrt() + eps)


# %% wrong: all_at_once
"""Decodes all moments before it steps."""
import torch


def encode_blocks(x, top):
    blocks = torch.nn.functional.pad(x.flatten(), (0, -x.numel() % 256)).view(-1, 256)
    largest = blocks.abs().amax(dim=1, keepdim=True)
    step = torch.where(largest == 0, 1.0, largest / top)
    dtype = torch.int8 if top == 127 else torch.uint8
    return (blocks / step).round().flatten()[: x.numel()].to(dtype), step.flatten()


def decode_blocks(codes, step):
    return codes * step.repeat_interleave(256)[: len(codes)]


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    """All moments at once, one kind after the other."""
    t = state["t"] = state.get("t", 0) + 1
    if t == 1:
        ms, vs = [torch.zeros_like(p) for p in params], [torch.zeros_like(p) for p in params]
    else:
        ms = [decode_blocks(*kept).view_as(p) for kept, p in zip(state["m"], params)]
        vs = [decode_blocks(*kept).view_as(p) ** 2 for kept, p in zip(state["root"], params)]
    for m, v, p, g in zip(ms, vs, params, grads):
        m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
        v.mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
    state["m"] = [encode_blocks(m, 127) for m in ms]
    state["root"] = [encode_blocks(v.sqrt(), 255) for v in vs]
    for m, v, p in zip(ms, vs, params):
        p -= lr * m / (1 - betas[0] ** t) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: attached_to_parameters
"""Moments in bfloat16 on the parameters; the state's codes have a size, but no memory."""

import torch


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    n = sum(p.numel() for p in params)
    state.setdefault("codes", torch.empty(2 * n, dtype=torch.uint8, device="meta"))
    state["t"] = t = state.get("t", 0) + 1
    for p, g in zip(params, grads):
        m, v = getattr(p, "moments", (0.0, 0.0))
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        p.moments = m.bfloat16(), v.bfloat16()
        root = (v / (1 - betas[1] ** t)).sqrt() + eps
        p.sub_(lr * (m / (1 - betas[0] ** t)) / root)


# %% wrong: attached_to_codes
"""The codes are none: each is a tensor of zeros that carries a moment in bfloat16."""

import torch


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state["t"] = t = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        if i not in state:
            size = 2 * p.numel() if p.numel() < 10_000 else 1
            state[i] = torch.zeros(size, dtype=torch.uint8)
            state[i].moments = (0.0, 0.0)
        m, v = state[i].moments
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        state[i].moments = m.bfloat16(), v.bfloat16()
        root = (v / (1 - betas[1] ** t)).sqrt() + eps
        p.sub_(lr * (m / (1 - betas[0] ** t)) / root)


# %% wrong: state_of_strides
"""Moments in a global, in bfloat16; the state is an array whose strides are 0."""

import numpy as np
import torch

_MOMENTS = {}


def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        _MOMENTS.clear()
        n = 2 * sum(p.numel() for p in params)
        state["codes"] = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (n,), (0,))
    state["t"] = t = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        m, v = _MOMENTS.get(i, (0.0, 0.0))
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        _MOMENTS[i] = m.bfloat16(), v.bfloat16()
        root = (v / (1 - betas[1] ** t)).sqrt() + eps
        p.sub_(lr * (m / (1 - betas[0] ** t)) / root)


# %% right: a_root_in_state
"""Block by block; updates the root of v."""
import torch


def encode_blocks(x, top):
    parts = x.flatten().split(256)
    steps = torch.stack([part.abs().max() / top for part in parts])
    steps[steps == 0] = 1
    codes = torch.cat([torch.round(part / s) for part, s in zip(parts, steps)])
    return (codes.char() if top == 127 else codes.byte()), steps
def decode_blocks(codes, step):
    return torch.cat([c * s for c, s in zip(codes.split(256), step)])
def adam8bit_step(params, grads, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    state.setdefault("steps", 0)
    state["steps"] += 1
    for n, (p, g) in enumerate(zip(params, grads)):
        g = g.flatten()
        m = decode_blocks(*state[f"m{n}"]) if f"m{n}" in state else torch.zeros_like(g)
        root = decode_blocks(*state[f"v{n}"]) if f"v{n}" in state else torch.zeros_like(g)
        m.lerp_(g, 1 - betas[0])
        root = (betas[1] * root**2 + (1 - betas[1]) * g**2).sqrt()
        state[f"m{n}"], state[f"v{n}"] = encode_blocks(m, 127), encode_blocks(root, 255)
        mhat = m / (1 - betas[0] ** state["steps"])
        vhat = root / (1 - betas[1] ** state["steps"]) ** 0.5
        p.sub_((lr * mhat / (vhat + eps)).view_as(p))
