"""The default dtype is bfloat16. [earns 3]"""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.bfloat16):
        self.lr, self.dtype = lr, dtype
        self.master, self.params = [], []

    def load(self, tensors):
        self.master = [t.detach().float().clone() for t in tensors]
        self.params = [m.to(self.dtype).requires_grad_() for m in self.master]

    def step(self):
        with torch.no_grad():
            for master, param in zip(self.master, self.params):
                if param.grad is None:
                    continue
                master -= self.lr * param.grad.float()
                param.copy_(master)
