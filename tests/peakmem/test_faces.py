"""The public faces of the library's folders: few names, each where its table says, loaded late."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from peakmem.core.lazy import loader
from tests.test_architecture import LIBRARY

FACES = [
    name for row in LIBRARY for name in row if name not in ("probes", "labs", "show", "labs/labNN")
]


@pytest.mark.parametrize("folder", FACES)
def test_a_face_offers_a_few_names_that_are_there(folder: str) -> None:
    face = import_module(f"peakmem.{folder}")
    assert 0 < len(face.__all__) <= 15
    for name in face.__all__:
        module = import_module(f"peakmem.{folder}.{face._PLACES[name]}")
        assert getattr(face, name) is getattr(module, name)
        assert name in module.__all__


@pytest.mark.parametrize("folder", FACES)
def test_a_module_cannot_take_the_place_of_a_name(folder: str) -> None:
    """Python makes an imported module an attribute of its folder, and `__getattr__` comes last."""
    face = import_module(f"peakmem.{folder}")
    assert not set(face.__all__) & set(face._PLACES.values())


def test_a_face_loads_its_modules_late() -> None:
    code = (
        "import sys, peakmem.plan as plan\n"
        "assert 'peakmem.plan.chain' not in sys.modules\n"
        "plan.Chain\n"
        "assert 'peakmem.plan.chain' in sys.modules and 'peakmem.plan.rotor' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_a_face_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'peakmem\.core' has no attribute 'nothing'"):
        loader("peakmem.core", {"both": "units"})("nothing")
