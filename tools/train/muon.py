"""Muon: momentum whose update is made orthogonal, for the 2-D weights (Jordan et al., 2024)."""
import torch


def orthogonalise(g, steps=5):
    """Newton-Schulz towards U V^T of g [n, rows, cols], rows <= cols, in bfloat16."""
    x = g.bfloat16()
    x = x / (x.float().square().sum((1, 2), keepdim=True).sqrt() + 1e-7).bfloat16()
    for _ in range(steps):
        a = x @ x.transpose(1, 2)
        b = -4.7750 * a + 2.0315 * (a @ a)
        x = 3.4445 * x + b @ x
    return x.float()


class Muon(torch.optim.Optimizer):
    """Parameters are stacks [n, rows, cols]. Stacks whose matrices have one shape (up to a transpose) go together."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            batches = {}
            for p in group["params"]:
                batches.setdefault(tuple(sorted(p.shape[1:])), []).append(p)
            for params in batches.values():
                self.step_batch(params, group)

    def step_batch(self, params, group):
        updates = []
        for p in params:
            m = self.state[p].setdefault("momentum", torch.zeros_like(p))
            m.lerp_(p.grad, 1.0 - group["momentum"])
            u = torch.lerp(p.grad, m, group["momentum"])
            updates.append(u.transpose(1, 2) if p.shape[1] > p.shape[2] else u)
        for p, u in zip(params, orthogonalise(torch.cat(updates)).split([p.shape[0] for p in params])):
            u = u.transpose(1, 2) if p.shape[1] > p.shape[2] else u
            p.mul_(1.0 - group["lr"] * group["weight_decay"])
            p.add_(u, alpha=-group["lr"] * max(1.0, p.shape[1] / p.shape[2]) ** 0.5)
