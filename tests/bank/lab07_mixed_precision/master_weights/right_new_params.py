"""New params at each step."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr = lr
        self.dtype = dtype

    def load(self, tensors):
        self.master = [torch.tensor(t.tolist()).reshape(t.shape) for t in tensors]
        self._round()

    def _round(self):
        self.params = [m.to(self.dtype).clone().requires_grad_(True) for m in self.master]

    def step(self):
        moved = []
        for master, param in zip(self.master, self.params):
            grad = param.grad
            moved.append(master if grad is None else master - self.lr * grad.to(torch.float32))
        self.master = moved
        self._round()
