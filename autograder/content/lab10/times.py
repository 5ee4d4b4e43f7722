"""Exercise: hooks that time each module's own forward, on a clock that the modules advance.

The clock belongs to the probe, and only modules' forwards advance it. So the right seconds are
known exactly, and a busy machine doesn't change a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import numpy as np

from autograder.model.compare import show
from autograder.model.task import Answer, Case, Finding, Task
from peakmem.labs.compare import close

__all__ = ["module_times", "times_of"]

Tree = Mapping[str, Any]
_close = close(1e-6, 1e-9)


def times_of(tree: Tree, *, children: bool = False, once: bool = False) -> dict[str, float]:
    """Each module's own seconds over all calls, by dotted name; 0 if it is never called.

    With `children`, parents include their children's time; with `once`, only the last call counts.
    """
    found: dict[str, float] = {}

    def visit(module: Tree, name: str, calls: int) -> float:
        """Record the module and those in it; return the total time of one call."""
        start = f"{name}." if name else ""
        if module.get("list"):
            found[f"{start}parts"] = 0.0
        own = float(module["before"] + module["after"]) / 1000
        whole = own
        for number, child in enumerate(module["children"]):
            of_child = f"{start}parts.{number}" if module.get("list") else start + child["name"]
            whole += child["calls"] * visit(child, of_child, calls * child["calls"])
        found[name] = (whole if children else own) * (min(calls, 1) if once else calls)
        return whole

    visit(tree, "", 1)
    return found


def _leaves_only(tree: Tree) -> dict[str, float]:
    """Modules with children take 0."""
    right = times_of(tree)
    parents = {name.rpartition(".")[0] for name in right if name} - {""}
    parents |= {""} if len(right) > 1 else set()
    return {name: 0.0 if name in parents else took for name, took in right.items()}


def _without_root(tree: Tree) -> dict[str, float]:
    return {**times_of(tree), "": 0.0}


def _milliseconds(tree: Tree) -> dict[str, float]:
    return {name: 1000 * took for name, took in times_of(tree).items()}


_MUTANTS: Mapping[str, Callable[[Tree], dict[str, float]]] = {
    "children_included": lambda tree: times_of(tree, children=True),
    "last_call_only": lambda tree: times_of(tree, once=True),
    "last_call_with_children": lambda tree: times_of(tree, once=True, children=True),
    "leaves_only": _leaves_only,
    "root_left_out": _without_root,
    "milliseconds": _milliseconds,
}


def _cases(rng: np.random.Generator) -> list[Case]:
    def module(name: str, *children: Tree, calls: int = 1, **more: Any) -> Tree:
        before, after = (int(n) for n in rng.integers(10, 900, 2))
        own = {"name": name, "before": before, "after": after, "calls": calls}
        return {**own, "children": list(children), **more}

    alone = module("")
    chain = module("", *(module(f"layer{i}") for i in range(3)))
    inner = module("attention", module("qkv"), module("out"))
    nested = module("", module("block", inner, module("mlp")), module("head"))
    twice = module("", module("block", module("mlp", calls=2), calls=2), module("unused", calls=0))
    listed = module("", module("a"), module("b", module("c")), list=True)
    trees = [alone, chain, nested, twice, listed]
    # A module with two names: named_modules() has the first.
    block = module("block", module("linear"))
    trees.append(module("", module("act", calls=2, again="block.act"), block))
    return [Case(("value",), {"tree": tree}) for tree in trees]


def _judge(case: Case, answer: Answer) -> Mapping[str, Finding]:
    return {"value": _finding(case.inputs["tree"], answer.value)}


def _finding(tree: Tree, value: Any) -> Finding:
    if (
        not isinstance(value, dict)
        or not {"seconds", "reads", "hooks", "others_stay"} <= value.keys()
    ):
        return Finding(False, "The answers came back garbled.")
    if type(value["reads"]) is not int or value["reads"] <= 0:
        alone = ("root_left_out",) * (not tree["children"])
        return Finding(False, "Your code never reads time.perf_counter.", ("another_clock", *alone))
    got, right = value["seconds"], times_of(tree)
    if not _same(tree, right, got):
        said = f"Modules {', '.join(map(repr, right))}: {_first_differing(tree, right, got)}"
        return Finding(False, said, (*_explain(tree, got), *_left(value)))
    if value["reads"] < 2 * _calls(tree):
        return Finding(False, doubt=_UNREAD)
    if value["others_stay"] is not True:
        said = "Your code removed a hook that the model already had."
        return Finding(False, said, ("others_removed",))
    if value.get("modes_stay") is not True:
        said = "Your code changed the training mode of a module."
        return Finding(False, said, ("modes_changed",))
    left = tuple(_left(value))
    return Finding(not left, "Your hooks are still on the modules." if left else "", left)


def _calls(tree: Tree) -> int:
    """The number of module calls; the clock must be read when each starts and ends."""
    of_children = (int(child["calls"]) * _calls(child) for child in tree["children"])
    return 1 + sum(of_children)


def _explain(tree: Tree, got: Any) -> Iterator[str]:
    yield from (name for name, mutant in _MUTANTS.items() if _same(tree, mutant(tree), got))


def _left(value: Mapping[str, Any]) -> Iterator[str]:
    if type(value["hooks"]) is not int or value["hooks"] != 0:
        yield "hooks_left"


def _same(tree: Tree, right: Mapping[str, float], got: Any) -> bool:
    """Modules that took no time may be left out; a module's second name may have 0 seconds."""
    names = _names(tree, right)
    if not isinstance(got, dict) or not got.keys() <= names:
        return False
    return all(_close(right.get(name, 0.0), got.get(name, 0.0)) for name in names)


def _names(tree: Tree, right: Mapping[str, float]) -> Set[str]:
    return right.keys() | {child["again"] for child in tree["children"] if "again" in child}


def _first_differing(tree: Tree, right: Mapping[str, float], got: Any) -> str:
    """Where a wrong answer first differs, to follow the modules' names."""
    if not isinstance(got, dict):
        return f"expected seconds in a dict, but got {show(got)}."
    for name in got:
        if name not in _names(tree, right):
            return f"your dict has {show(name)}. Use the names of model.named_modules()."
    name = next(n for n in right if not _close(right[n], got.get(n, 0.0)))
    return f"for {show(name)} expected {show(right[name])} s, but got {show(got.get(name))}."


_UNREAD = (
    "The seconds are correct, but the clock was read fewer than twice for each call of a module. "
    "An instructor will look at this."
)

module_times = Task(
    id="lab10-module_times",
    parts={"value": 2},
    defines=("module_times",),
    probe="module_times",
    stretch=True,
    cases=_cases,
    judge=_judge,
    mistakes={
        "another_clock": "Read the time with time.perf_counter() when a hook runs.",
        "children_included": "Your seconds for a module include its children's. Subtract the "
        "children's time.",
        "last_call_only": "You count only one run of a module that runs twice. Add up its runs.",
        "last_call_with_children": "Your seconds for a module include its children's, and you "
        "count only the last run of a module that runs twice.",
        "leaves_only": "Modules with children do work of their own: their own time is their total "
        "minus their children's.",
        "root_left_out": "The model's own time is missing. Its name is the empty string, and only "
        "model(x) runs its hooks; model.forward(x) doesn't.",
        "milliseconds": "Return seconds, not milliseconds.",
        "hooks_left": "Your hooks stay on the modules. Keep the handles that the register "
        "functions return, and remove() each.",
        "modes_changed": "You change the model's mode. Run it as it is: train() and eval() change "
        "what a forward does.",
        "others_removed": "You remove all of the modules' hooks. Others may have registered some: "
        "remove() only your own handles.",
    },
)
