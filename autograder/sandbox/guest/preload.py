"""Imports modules once for a whole class, so that no submission waits for them."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import pkgutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import peakmem
from autograder.sandbox.guest.room import find_idle
from peakmem.probes import set_aside_for_good

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from autograder.sandbox.guest.shell import Recorder

__all__ = ["has_gpu", "prepare"]

_NO_LABS = {
    "peakmem.show.cli",
    "peakmem.show.widgets",
}  # commands and calculators, which labs don't need


def prepare(modules: Sequence[str]) -> tuple[InteractiveShell, Recorder]:
    """Import those of these modules that exist; return a shell that has run a first cell.

    If torch's compiler is among them (optimizers load it), all of peakmem that students may import
    is imported too.
    """
    from autograder.sandbox.guest.shell import make_shell

    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    gc.disable()  # imported modules stay; scanning them for garbage is slow
    for name in modules:
        with contextlib.suppress(ImportError):  # modules with a lab's answers refuse
            importlib.import_module(name)
    if "peakmem.labs" in sys.modules:
        _ = peakmem.lab  # a lab's first cell calls it, and its module loads lazily
    if "torch" in sys.modules:
        _warm_torch()
        _prepare_ranks()
    if "torch._dynamo" in modules:
        _warm_optimizers()
        _import_library()
    _let_databases_do_without_locks()
    find_idle()
    gc.freeze()  # a new shell collects garbage
    made = make_shell(draws="matplotlib" in sys.modules)
    gc.enable()
    set_aside_for_good()
    return made


def has_gpu() -> bool:
    """Tell whether this process can use a GPU; False without torch."""
    torch = sys.modules.get("torch")
    # is_available() would initialise CUDA here, and then no fork of this process could use it.
    return torch is not None and bool(torch.cuda.device_count())


def _warm_torch() -> None:
    """Trigger torch's work at first use now, so that no budget pays for it."""
    import torch

    # The matrix library keeps buffers after its first large product, and others (8 MiB with
    # AVX-512) from the first of a narrow matrix with a long one's transpose.
    torch.mm(torch.ones(512, 512), torch.ones(512, 512))
    torch.mm(torch.ones(32, 16), torch.ones(8192, 16).T)


def _warm_optimizers() -> None:
    """Take a first optimizer step here, because it makes torch import its compiler."""
    import torch

    parameter = torch.zeros(1, requires_grad=True)
    parameter.grad = torch.zeros(1)
    torch.optim.SGD([parameter], lr=0.1).step()


def _prepare_ranks() -> None:
    """Let ranks fork from the submission's process, which is already prepared."""
    with contextlib.suppress(ImportError):  # torch may be built without torch.distributed
        from peakmem.measure.ranks import fork_from_here

        fork_from_here()


def _let_databases_do_without_locks() -> None:
    """Make SQLite use its backend without file locks by default, since the filter refuses them."""
    import _sqlite3

    sqlite = ctypes.CDLL(_sqlite3.__file__)  # also finds the names of the library it links to
    with contextlib.suppress(AttributeError):  # a statically linked SQLite hides its names
        sqlite.sqlite3_vfs_find.restype = ctypes.c_void_p
        found = sqlite.sqlite3_vfs_find(b"unix-none")
        sqlite.sqlite3_vfs_register(ctypes.c_void_p(found), 1)


def _import_library() -> None:
    """Import what first cells and probes will need; modules with a lab's answers refuse."""
    for name in _modules_in(peakmem.__path__, "peakmem."):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _modules_in(path: Iterable[str], prefix: str) -> Iterator[str]:
    for module in pkgutil.iter_modules(path, prefix):
        if module.name not in _NO_LABS:
            yield module.name
            if module.ispkg:
                folders = [str(Path(folder) / module.name.rpartition(".")[2]) for folder in path]
                yield from _modules_in(folders, f"{module.name}.")
