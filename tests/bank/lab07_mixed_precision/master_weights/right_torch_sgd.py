"""torch.optim.SGD on the masters."""

import torch


class MasterWeights:
    def __init__(self, lr, dtype=torch.float16):
        self.lr, self.dtype = lr, dtype

    def load(self, tensors):
        self.master = [t.detach().clone().float() for t in tensors]
        self.params = [torch.nn.Parameter(m.to(self.dtype)) for m in self.master]
        self.optimizer = torch.optim.SGD(self.master, lr=self.lr, foreach=False)

    def step(self):
        for master, param in zip(self.master, self.params):
            master.grad = None if param.grad is None else param.grad.float()
        self.optimizer.step()
        for master, param in zip(self.master, self.params):
            param.data = master.to(self.dtype)
