"""Configs of published models, with the entries that shapes depend on, and small ones."""

from __future__ import annotations

from typing import Any

__all__ = ["PUBLISHED", "SMALL"]


def decoder(
    model_type: str,
    hidden: int,
    inner: int,
    layers: int,
    heads: int,
    kv_heads: int,
    vocab: int,
    **others: Any,
) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": vocab,
        **others,
    }


def gpt2(d: int, layers: int, heads: int, **others: Any) -> dict[str, Any]:
    sizes = {"n_embd": d, "n_layer": layers, "n_head": heads, "n_positions": 1024}
    return {"model_type": "gpt2", "vocab_size": 50257, **sizes, **others}


def opt(d: int, inner: int, layers: int, heads: int, **others: Any) -> dict[str, Any]:
    sizes = {"hidden_size": d, "ffn_dim": inner, "num_hidden_layers": layers}
    sizes |= {"num_attention_heads": heads, "max_position_embeddings": 2048, "vocab_size": 50272}
    return {"model_type": "opt", **sizes, **others}


def encoder(model_type: str, d: int, inner: int, layers: int, heads: int, **others: Any):
    sizes = {"hidden_size": d, "intermediate_size": inner, "num_hidden_layers": layers}
    return {"model_type": model_type, **sizes, "num_attention_heads": heads, **others}


def t5(d: int, inner: int, layers: int, heads: int, **others: Any) -> dict[str, Any]:
    sizes = {"d_model": d, "d_ff": inner, "num_layers": layers, "num_heads": heads, "d_kv": 64}
    return {"model_type": "t5", "vocab_size": 32128, **sizes, **others}


LATENT = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}

# As on the hub.
PUBLISHED: dict[str, dict[str, Any]] = {
    "gpt2": gpt2(768, 12, 12, architectures=["GPT2LMHeadModel"]),
    "gpt2-xl": gpt2(1600, 48, 25),
    "gpt-neox-20b": encoder("gpt_neox", 6144, 24576, 44, 64, vocab_size=50432),
    "pythia-160m": encoder("gpt_neox", 768, 3072, 12, 12, vocab_size=50304),
    "opt-125m": opt(768, 3072, 12, 12, word_embed_proj_dim=768),
    "opt-350m": opt(1024, 4096, 24, 16, word_embed_proj_dim=512, do_layer_norm_before=False),
    "opt-66b": opt(9216, 36864, 64, 72),
    "llama2-7b": decoder("llama", 4096, 11008, 32, 32, 32, 32000),
    "llama2-70b": decoder("llama", 8192, 28672, 80, 64, 8, 32000),
    "llama3-8b": decoder("llama", 4096, 14336, 32, 32, 8, 128256),
    "llama3.2-1b": decoder(
        "llama", 2048, 8192, 16, 32, 8, 128256, head_dim=64, tie_word_embeddings=True
    ),
    "llama3-405b": decoder("llama", 16384, 53248, 126, 128, 8, 128256),
    "mistral-7b": decoder("mistral", 4096, 14336, 32, 32, 8, 32000),
    "mistral-nemo": decoder("mistral", 5120, 14336, 40, 32, 8, 131072, head_dim=128),
    "mixtral-8x7b": decoder(
        "mixtral", 4096, 14336, 32, 32, 8, 32000, num_local_experts=8, num_experts_per_tok=2
    ),
    "mixtral-8x22b": decoder(
        "mixtral", 6144, 16384, 56, 48, 8, 32768, num_local_experts=8, num_experts_per_tok=2
    ),
    "qwen2-0.5b": decoder("qwen2", 896, 4864, 24, 14, 2, 151936, tie_word_embeddings=True),
    "qwen2.5-7b": decoder("qwen2", 3584, 18944, 28, 28, 4, 152064),
    "qwen1.5-moe-a2.7b": decoder(
        "qwen2_moe",
        2048,
        5632,
        24,
        16,
        16,
        151936,
        num_experts=60,
        num_experts_per_tok=4,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        decoder_sparse_step=1,
    ),
    "qwen3-0.6b": decoder(
        "qwen3", 1024, 3072, 28, 16, 8, 151936, head_dim=128, tie_word_embeddings=True
    ),
    "qwen3-8b": decoder("qwen3", 4096, 12288, 36, 32, 8, 151936, head_dim=128),
    "qwen3-30b-a3b": decoder(
        "qwen3_moe",
        2048,
        6144,
        48,
        32,
        4,
        151936,
        head_dim=128,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
    ),
    "qwen3-235b-a22b": decoder(
        "qwen3_moe",
        4096,
        12288,
        94,
        64,
        4,
        151936,
        head_dim=128,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=1536,
    ),
    "gemma2-2b": decoder("gemma2", 2304, 9216, 26, 8, 4, 256000, head_dim=256),
    "gemma2-27b": decoder("gemma2", 4608, 36864, 46, 32, 16, 256000, head_dim=128),
    "gemma3-270m": decoder("gemma3_text", 640, 2048, 18, 4, 1, 262144, head_dim=256),
    "gemma3-1b": decoder("gemma3_text", 1152, 6912, 26, 4, 1, 262144, head_dim=256),
    "phi-1.5": encoder("phi", 2048, 8192, 24, 32, vocab_size=51200),
    "phi-2": encoder("phi", 2560, 10240, 32, 32, vocab_size=51200),
    "deepseek-v2-lite": decoder(
        "deepseek_v2",
        2048,
        10944,
        27,
        16,
        16,
        102400,
        **LATENT,
        q_lora_rank=None,
        moe_intermediate_size=1408,
        n_routed_experts=64,
        n_shared_experts=2,
        num_experts_per_tok=6,
        first_k_dense_replace=1,
    ),
    "deepseek-v2": decoder(
        "deepseek_v2",
        5120,
        12288,
        60,
        128,
        128,
        102400,
        **LATENT,
        q_lora_rank=1536,
        moe_intermediate_size=1536,
        n_routed_experts=160,
        n_shared_experts=2,
        num_experts_per_tok=6,
        first_k_dense_replace=1,
    ),
    "deepseek-v3": decoder(
        "deepseek_v3",
        7168,
        18432,
        61,
        128,
        128,
        129280,
        **LATENT,
        q_lora_rank=1536,
        moe_intermediate_size=2048,
        n_routed_experts=256,
        n_shared_experts=1,
        num_experts_per_tok=8,
        first_k_dense_replace=3,
    ),
    "bert-base": encoder(
        "bert", 768, 3072, 12, 12, vocab_size=30522, max_position_embeddings=512, type_vocab_size=2
    ),
    "bert-large": encoder(
        "bert", 1024, 4096, 24, 16, vocab_size=30522, max_position_embeddings=512
    ),
    "t5-small": t5(512, 2048, 6, 8),
    "t5-11b": t5(1024, 65536, 24, 128) | {"d_kv": 128},
    "flan-t5-base": t5(
        768, 2048, 12, 12, feed_forward_proj="gated-gelu", tie_word_embeddings=False
    ),
    "vit-base": encoder(
        "vit",
        768,
        3072,
        12,
        12,
        image_size=224,
        patch_size=16,
        id2label={str(n): f"class {n}" for n in range(1000)},
    ),
    "vit-huge-14": encoder("vit", 1280, 5120, 32, 16, image_size=224, patch_size=14),
}

# The settings that published models leave at their defaults.
SMALL: dict[str, dict[str, Any]] = {
    "gpt2, wide and untied": gpt2(48, 2, 3, n_inner=100, tie_word_embeddings=False),
    "gpt_neox without biases": encoder(
        "gpt_neox", 32, 72, 3, 4, vocab_size=90, attention_bias=False, tie_word_embeddings=True
    ),
    "opt without biases and affine norms": opt(
        32, 80, 2, 4, enable_bias=False, layer_norm_elementwise_affine=False
    ),
    "opt, untied and narrow": opt(32, 80, 2, 4, word_embed_proj_dim=16, tie_word_embeddings=False),
    "llama with biases": decoder("llama", 32, 88, 3, 4, 2, 90, attention_bias=True, mlp_bias=True),
    "mistral, heads wider than d": decoder("mistral", 32, 88, 2, 4, 2, 90, head_dim=24),
    "mixtral, tied": decoder(
        "mixtral",
        32,
        40,
        2,
        4,
        4,
        90,
        num_local_experts=5,
        num_experts_per_tok=2,
        tie_word_embeddings=True,
    ),
    "qwen2_moe, every third a mixture": decoder(
        "qwen2_moe",
        32,
        72,
        8,
        4,
        2,
        90,
        num_experts=6,
        num_experts_per_tok=2,
        qkv_bias=False,
        moe_intermediate_size=24,
        shared_expert_intermediate_size=56,
        decoder_sparse_step=3,
    ),
    "qwen2, heads wider than d": decoder("qwen2", 32, 88, 2, 4, 2, 90, head_dim=24),
    "qwen3 with biases": decoder("qwen3", 32, 72, 2, 4, 2, 90, head_dim=16, attention_bias=True),
    "qwen3_moe, some layers dense": decoder(
        "qwen3_moe",
        32,
        72,
        5,
        4,
        2,
        90,
        num_experts=6,
        num_experts_per_tok=3,
        moe_intermediate_size=24,
        decoder_sparse_step=2,
        mlp_only_layers=[0, 3],
    ),
    "gemma2 with biases": decoder(
        "gemma2", 32, 72, 2, 4, 2, 90, head_dim=16, attention_bias=True, tie_word_embeddings=False
    ),
    "gemma3 without head_dim": decoder("gemma3_text", 32, 72, 2, 4, 1, 90),
    "phi, normalized": decoder("phi", 32, 72, 3, 4, 2, 90, qk_layernorm=True),
    "deepseek_v2 with biases": decoder(
        "deepseek_v2",
        32,
        72,
        3,
        4,
        4,
        90,
        kv_lora_rank=12,
        qk_nope_head_dim=6,
        qk_rope_head_dim=4,
        v_head_dim=10,
        q_lora_rank=14,
        moe_intermediate_size=20,
        n_routed_experts=7,
        n_shared_experts=3,
        num_experts_per_tok=2,
        mlp_bias=True,
        attention_bias=True,
    ),
    "deepseek_v3, all layers dense": decoder(
        "deepseek_v3",
        32,
        72,
        2,
        4,
        4,
        90,
        kv_lora_rank=12,
        qk_nope_head_dim=6,
        qk_rope_head_dim=4,
        v_head_dim=10,
        q_lora_rank=None,
        moe_intermediate_size=20,
        n_routed_experts=8,
        n_shared_experts=1,
        num_experts_per_tok=2,
        n_group=2,
        topk_group=1,
    ),
    "bert, untied": encoder(
        "bert",
        32,
        72,
        2,
        4,
        vocab_size=90,
        max_position_embeddings=40,
        type_vocab_size=3,
        tie_word_embeddings=False,
    ),
    "t5, unequal stacks": t5(32, 72, 2, 4, num_decoder_layers=3, relative_attention_num_buckets=8),
    "vit, oblong": encoder(
        "vit",
        32,
        72,
        2,
        4,
        image_size=[32, 48],
        patch_size=[8, 16],
        num_channels=1,
        qkv_bias=False,
        num_labels=7,
    ),
}
