"""Models, accelerators, recipes and ledgers as data: the input and output of a prediction."""

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
