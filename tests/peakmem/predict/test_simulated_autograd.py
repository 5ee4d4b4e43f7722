"""Autograd on paper against lifetimes counted on paper; test_predict has autograd itself."""

from peakmem.predict.autograd_rules import PROFILES, Rule
from peakmem.predict.simulated_autograd import Side, Tape, Value
from peakmem.specs.ledger import Ledger

SIZE = (16,)  # of every tensor here: 64 bytes in fp32
SIN = Rule(saves=("x",), backward=(("cos mul", ("x",)),))
EXP = Rule(saves=("output",), backward=(("mul", ("x",)),))
ADD = Rule(passes=("a", "b"))
SCALE = Rule(saves=("x", "weight"), backward=(("mul", ("x",)), ("mul", ("weight",))))


def chain(tape: Tape, x: Value, *names: str) -> Value:
    rules = {"sin": SIN, "exp": EXP}
    for name in names:
        x = tape.apply(name, rules[name], {"x": x}, SIZE, "fp32")
    return x


def backward(tape: Tape, output: Value) -> None:
    tape.phase = "backward"
    tape.event("seed")
    tape.backward(output, tape.make("seed", output.shape, output.dtype))


def lives(ledger: Ledger) -> dict[str, tuple[int, int]]:
    return {tensor.name: (tensor.birth, tensor.death) for tensor in ledger.tensors}


def test_a_tensor_lives_until_the_last_operator_that_needs_it():
    tape = Tape()
    x = tape.resident("x", "activation", SIZE, "fp32")
    backward(tape, chain(tape, x, "exp", "sin", "sin"))
    ledger = tape.ledger()
    names = [event.name for event in ledger.events]
    # 0 start, 1 exp, 2 sin, 3 sin, 4 seed, 5 and 6 backward of sin, 7 backward of exp
    assert names == [
        "start",
        "exp",
        "sin",
        "sin",
        "seed",
        "sin: cos mul",
        "sin: cos mul",
        "exp: mul",
    ]
    assert [(tensor.birth, tensor.death) for tensor in ledger.tensors] == [
        (0, 7),  # x is there from start to end
        (1, 7),  # exp keeps its output, and sin its input: the same tensor, kept once
        (2, 5),
        (3, 3),  # nothing needs the last output
        (4, 5),
        (5, 6),
        (6, 7),
        (7, 7),
    ]
    owners = [tensor.owner for tensor in ledger.tensors]
    assert owners == ["activation"] * 3 + ["temporary"] * 5


def test_gradients_that_meet_are_added_and_passed_on_ones_are_shared():
    tape = Tape()
    x = tape.resident("x", "activation", SIZE, "fp32")
    h = chain(tape, x, "exp")
    total = tape.apply("add", ADD, {"a": h, "b": chain(tape, h, "sin")}, SIZE, "fp32")
    backward(tape, total)
    names = [event.name for event in tape.ledger().events][5:]
    assert names == ["sin: cos mul", "add", "exp: mul"]
    lifetimes = [(t.birth, t.death) for t in tape.ledger().tensors][4:]
    # The seed goes both ways: it lives until it is added to what came through sin.
    assert lifetimes == [(4, 6), (5, 6), (6, 7), (7, 7)]


def test_a_parameters_gradient_stays_and_later_ones_are_added_in_place():
    tape = Tape()
    weight = tape.resident("w", "parameter", SIZE, "fp32")
    for name in ("first", "second"):
        x = tape.resident(name, "activation", SIZE, "fp32")
        y = tape.apply("scale", SCALE, {"x": x, "weight": weight}, SIZE, "fp32")
        backward(tape, y)
    gradients = [t for t in tape.ledger().tensors if t.owner == "gradient"]
    last = len(tape.ledger().events) - 1
    assert [g.death for g in gradients] == [last, last]  # the second until it was added
    assert tape.ledger().events[last].name == "add_"


def test_a_tied_parameter_waits_for_all_its_uses():
    tape = Tape()
    weight = tape.resident("w", "parameter", SIZE, "fp32")
    x = tape.resident("x", "activation", SIZE, "fp32")
    for _ in range(2):
        x = tape.apply("scale", SCALE, {"x": x, "weight": weight}, SIZE, "fp32")
    backward(tape, x)
    at_once = [
        sum(t.birth <= at <= t.death for t in tape.ledger().tensors if t.owner == "gradient")
        for at in range(len(tape.ledger().events))
    ]
    assert max(at_once) == 3  # both, and their sum


def test_what_is_checkpointed_is_made_again_and_no_more_than_needed():
    tape = Tape()
    x = tape.resident("x", "activation", SIZE, "fp32")
    y = tape.checkpoint(lambda: chain(tape, x, "sin", "exp", "sin"), kept=x)
    end_of_forward = len(tape.ledger().events) - 1
    backward(tape, y)
    ledger = tape.ledger()
    assert [t.name for t in ledger.live(end_of_forward)] == ["x", "exp", "sin"]
    # The last sin is not run again: its saved input exists already.
    assert [event.name for event in ledger.events][4:] == [
        *("seed", "sin", "exp"),
        *("sin: cos mul", "exp: mul", "sin: cos mul"),
    ]


def test_copies_under_autocast_are_made_once_and_live_to_its_end():
    tape = Tape()
    weight = tape.resident("w", "parameter", SIZE, "fp32")
    with tape.autocast(True):
        assert tape.cast(weight, "fp32") is weight
        assert tape.cast(weight, "bf16") is tape.cast(weight, "bf16")
        tape.event("something else")
    tape.event("after")
    assert lives(tape.ledger()) == {"w": (0, 3), "w in bf16": (1, 2)}


def test_side_outputs_and_what_is_not_used():
    tape = Tape()
    x = tape.resident("x", "activation", SIZE, "fp32")
    rule = Rule(saves=("mask",), backward=(("mul", ("x",)),))
    y = tape.apply("dropout", rule, {"x": x}, SIZE, "fp32", [Side("mask", SIZE, "bool")])
    chain(tape, y, "sin")  # nothing needs its gradient, so it has no backward
    backward(tape, y)
    assert [event.name for event in tape.ledger().events][3:] == ["seed", "dropout: mul"]
    mask = next(t for t in tape.ledger().tensors if t.name == "mask")
    assert (mask.bytes, mask.owner, mask.death) == (16, "activation", 4)


def test_every_profile_has_the_same_operators():
    operators = {name: set(profile.rules) for name, profile in PROFILES.items()}
    assert operators["torch-cpu"] == operators["torch-cuda"] == operators["paper"]
    for profile in PROFILES.values():
        assert profile.implementation in ("for-loop", "foreach", "fused")


def test_names_hold_their_tensors_even_where_a_second_run_stops_early():
    tape = Tape()
    x = tape.resident("x", "activation", SIZE, "fp32")

    def run() -> Value:
        with tape.holding() as names:
            y = chain(tape, x, "exp")
            names.append(y)
            return chain(tape, tape.apply("neg", Rule(), {"x": y}, SIZE, "fp32"), "sin")

    y = tape.checkpoint(run, kept=x)
    tape.phase = "backward"
    tape.event("seed")
    tape.event("later")
    first_run = [t for t in tape.ledger().tensors if t.name == "exp"]
    assert [(t.birth, t.death) for t in first_run] == [(1, 3)]  # until sin has run
    assert y.storage.birth == 3
