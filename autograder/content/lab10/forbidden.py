"""Tools that lab 10's solutions may not use: fused attention and losses."""

from __future__ import annotations

from autograder.content.meter_tampering import NO_METER_TAMPERING
from autograder.model.restrictions import Ban

__all__ = ["NO_FUSED_ATTENTION", "NO_FUSED_LOSS"]

NO_FUSED_ATTENTION = Ban(
    names=NO_METER_TAMPERING.names
    | {
        "scaled_dot_product_attention",
        "_scaled_dot_product_attention_math",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        "MultiheadAttention",
        "multi_head_attention_forward",
        "Transformer",
        "TransformerEncoder",
        "TransformerEncoderLayer",
        "TransformerDecoder",
        "TransformerDecoderLayer",
        "_native_multi_head_attention",
        "_transformer_encoder_layer_fwd",
        "flex_attention",
        "by_torch",  # the notebook's own function, for its self-checks
    },
    modules=NO_METER_TAMPERING.modules | {"torch.nn.attention"},
    reason="Write attention yourself: torch's version would do the exercise for you.",
)

NO_FUSED_LOSS = Ban(
    names=NO_METER_TAMPERING.names | {"linear_cross_entropy", "LinearCrossEntropyLoss"},
    modules=NO_METER_TAMPERING.modules,
    reason="Cut the loss into chunks yourself.",
)
