"""The basis of a lab's answers: every file of its probes, whether a module or a folder."""

from autograder.content import lab_names
from autograder.content.provenance import probe_files


def test_each_lab_has_its_probes_and_what_all_share():
    for lab in lab_names():
        number = lab.partition("_")[0]
        names = {
            path.parent.name if path.parent.name == number else path.stem
            for path in probe_files(number)
        }
        assert number in names, lab
        assert {"__init__", "leak", "gpu"} <= names
        others = {name for name in names if name.startswith("lab")} - {number}
        assert not others, "another lab's probes change nothing here"


def test_a_folders_modules_are_all_there():
    stems = {path.stem for path in probe_files("lab04") if path.parent.name == "lab04"}
    assert {"checkpoint", "leak", "segments"} <= stems
