"""By way of torch's dtypes."""
import torch


def bytes_per_parameter(recipe):
    full, half = torch.float32, torch.bfloat16
    weights = full if recipe in ("fp32", "sgd") else half
    grads = full if recipe in ("fp32", "sgd", "mixed_fp32_grads") else half
    master = full if recipe.startswith("mixed") else None
    moments = {"sgd": None, "bf16": half}.get(recipe, full)
    formats = [weights, grads, master, moments, moments]
    names = ["weights", "gradients", "master_weights", "first_moment", "second_moment"]
    return {name: f.itemsize if f else 0 for name, f in zip(names, formats)}
