import torch

from peakmem.probes.arrays import array_of, arrays_of, gradient_arrays


def test_arrays_are_copies_without_a_graph() -> None:
    leaf = torch.tensor([1.0, 2.0], requires_grad=True)
    before, (doubled,) = array_of(leaf), arrays_of([2 * leaf])
    with torch.no_grad():
        leaf.zero_()
    assert before.tolist() == [1, 2]
    assert doubled.tolist() == [2, 4]


def test_a_leaf_without_a_gradient_has_none() -> None:
    used, unused = (torch.ones(2, requires_grad=True) for _ in range(2))
    used.grad = torch.full((2,), 3.0).requires_grad_()
    first, second = gradient_arrays([used, unused])
    assert first is not None
    assert first.tolist() == [3, 3]
    assert second is None
