"""Chains of known networks: saved bytes and arithmetic of each layer, computed from its sizes.

Times are in 10^9 operations. A multiplication and an addition count 2, and backward takes twice as
many as forward. Bytes follow lab 4's model: saved tensors only, no gradients or temporaries.
"""

from __future__ import annotations

from peakmem.plan.chain import Chain, Stage
from peakmem.scale.parallelism import activation_bytes_per_layer
from peakmem.specs.models import ModelShape

__all__ = ["gpt_chain", "vgg16_chain"]

# Simonyan and Zisserman 2015, table 1, column D: channels of 3x3 convolutions, and whether a
# pooling follows that halves width and height.
# fmt: off
_VGG16 = (
    (64, False), (64, True), (128, False), (128, True),
    (256, False), (256, False), (256, True),
    (512, False), (512, False), (512, True),
    (512, False), (512, False), (512, True),
)
# fmt: on
_FULL = (4096, 4096, 1000)  # VGG's fully connected layers


def vgg16_chain(batch: int = 32, image: int = 224) -> Chain:
    """Return VGG-16 in fp32: 13 convolutions and 3 fully connected layers, one stage each.

    A stage is a layer with its in-place ReLU, so it saves its output only. A pooling belongs to the
    stage before it, which then saves the convolution's output and the pooling's, plus an 8-byte
    index for each of the pooling's elements. Raises ValueError if the batch is below 1 or the image
    can't be halved five times.

    >>> chain = vgg16_chain(batch=1)
    >>> [stage.saved_bytes / 1e6 for stage in chain.stages[:2]]
    [12.845056, 22.478848]
    """
    if batch < 1 or image < 32 or image % 32:
        raise ValueError(
            f"expected a batch of at least 1 and an image of 32, 64, ... pixels, but got {batch} "
            f"and {image}"
        )
    stages, channels, side = [], 3, image
    for wider, pooled in _VGG16:
        operations = 2 * 9 * channels * wider * side**2 * batch
        saved = output = 4 * batch * wider * side**2
        if pooled:
            side //= 2
            pixels = batch * wider * side**2
            output, saved = 4 * pixels, saved + 12 * pixels
        stages.append(_stage(operations, saved, output))
        channels = wider
    width = channels * side**2
    for wider in _FULL:
        stages.append(_stage(2 * batch * width * wider, 4 * batch * wider, 4 * batch * wider))
        width = wider
    return Chain(tuple(stages), input_bytes=4 * batch * 3 * image**2)


def gpt_chain(shape: ModelShape, batch: int, sequence: int) -> Chain:
    """Return a 16-bit GPT as stages: the embedding, each layer, and the head with the loss.

    A layer saves the bytes that Korthikanti et al. 2022 count. The head saves its norm's input and
    output, and the logits in fp32 (section 4.3).

    >>> from peakmem.specs.models import model
    >>> chain = gpt_chain(model("gpt2"), batch=8, sequence=1024)
    >>> len(chain), chain.stages[-1].saved_bytes // chain.stages[1].saved_bytes
    (14, 2)
    """
    tokens, d = batch * sequence, shape.d_model
    output = 2 * tokens * d
    saved = activation_bytes_per_layer(shape, batch, sequence)
    layer = _stage(24 * tokens * d * d + 4 * tokens * sequence * d, saved, output)
    head = _stage(2 * tokens * d * shape.vocab, output + 4 * tokens * shape.vocab, 4)
    embedding = _stage(0, output, output)
    return Chain((embedding, *[layer] * shape.n_layers, head), input_bytes=8 * tokens)


def _stage(operations: int, saved: int, output: int) -> Stage:
    return Stage(operations / 1e9, 2 * operations / 1e9, saved, output)
