"""What is trained and on what, as data: models, accelerators, recipes, and a step's ledger."""

from peakmem.core.lazy import loader

_PLACES = {
    "Accelerator": "hardware",
    "Ledger": "ledger",
    "ModelShape": "models",
    "Recipe": "recipes",
    "accelerator": "hardware",
    "model": "models",
}

__all__ = sorted(_PLACES)

__getattr__ = loader(__name__, _PLACES)
