"""A WeakValueDictionary of packed boxes, and all parameters found by the garbage collector."""

import gc
import itertools
import weakref

import torch


class Box(list):
    pass


def saved_bytes(fn, *inputs):
    boxes = weakref.WeakValueDictionary()
    number = itertools.count()

    def pack(tensor):
        box = Box([tensor.detach()])
        boxes[next(number)] = box
        return box

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box[0]):
        result = fn(*inputs)
    parameters = {
        thing.untyped_storage().data_ptr()
        for thing in gc.get_objects()
        if type(thing) is torch.nn.Parameter
    }
    kept = {}
    for box in boxes.values():
        storage = box[0].untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = len(storage)
    assert result is not None
    return sum(kept.values())
