"""add_ with alpha, in one pass over the bits."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = float(lr), dtype

    @torch.no_grad()
    def load(self, tensors):
        self.master = []
        self.params = []
        for t in tensors:
            m = torch.empty_like(t, dtype=torch.float32).copy_(t)
            self.master.append(m)
            self.params.append(m.to(dtype=self.dtype).requires_grad_())

    @torch.no_grad()
    def step(self):
        for i in range(len(self.master)):
            if self.params[i].grad is not None:
                self.master[i].add_(self.params[i].grad.float(), alpha=-self.lr)
                self.params[i].data.copy_(self.master[i].data)
