"""Makes the state as tensors without memory, and adds up their bytes."""
import torch


def state_bytes(shapes, optimizer):
    total = 0
    for shape in shapes:
        p = torch.empty(shape, device="meta")
        state = []
        if optimizer == "momentum":
            state = [p]
        elif optimizer == "adam":
            state = [p, p.clone()]
        elif optimizer == "adafactor":
            state = [p[..., 0], p[..., 0, :]] if p.ndim > 1 else [p]
        elif optimizer == "adam8bit":
            codes = torch.empty(p.numel(), dtype=torch.uint8, device="meta")
            scales = torch.empty((p.numel() + 255) // 256, device="meta")
            state = 2 * [codes, scales]
        total += sum(t.numel() * t.element_size() for t in state)
    return total
