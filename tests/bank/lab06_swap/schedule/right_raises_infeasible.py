"""Takes or leaves one stage after the other, by recursion; raises Infeasible, a ValueError too."""
import peakmem
from peakmem.swapping import simulate


def schedule(stages, budget_bytes, link_bytes_per_s):
    n = len(stages)

    def shortest(out):
        """The shortest (makespan, copies) with these stages out, and any of those after them."""
        copies = [("out", i, i) for i in out] + [("in", i, n - 1) for i in out[::-1]]
        found = []
        try:
            found.append((simulate(stages, budget_bytes, link_bytes_per_s, copies).makespan, copies))
        except peakmem.Infeasible:
            pass
        for i in range(out[-1] + 1 if out else 0, n):
            found.append(shortest([*out, i]))
        return min((pair for pair in found if pair), default=None)

    best = shortest([])
    if best is None:
        raise peakmem.Infeasible("nothing fits")
    return best[1]
