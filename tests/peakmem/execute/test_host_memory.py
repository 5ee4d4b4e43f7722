"""The host tier: values come back unchanged, every byte counts, nothing is left behind."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from peakmem.execute.host_memory import Handle, HostTier, layout_of, rebuild, whole_storage
from peakmem.measure.meter import MemoryMeter

DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn),
    *(torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64),
]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where hosts keep their files in this test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def bits(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (7,), (0,), (3, 0, 2), (3, 4)], ids=str)
def test_what_comes_back_is_what_went_out(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = torch.randint(0, 255, (math.prod(shape) * dtype.itemsize,), dtype=torch.uint8)
    if dtype is torch.bool:
        tensor &= 1
    tensor = tensor.view(dtype).reshape(shape)
    host = HostTier()
    handle = host.put(tensor)
    back = host.get(handle)
    assert (back.shape, back.dtype, back.requires_grad) == (tensor.shape, tensor.dtype, False)
    assert bits(back) == bits(tensor)
    size = tensor.numel() * tensor.element_size()
    assert (host.bytes_out, host.bytes_in, host.live_bytes, host.peak_bytes) == (size,) * 4
    assert handle.nbytes == size


@pytest.mark.parametrize(
    "view",
    [
        *(lambda t: t.T, lambda t: t[::2, 1:], lambda t: t[1], lambda t: t[:, :1].expand(4, 5)),
        *(lambda t: t.flip(0), lambda t: torch.complex(t, t).conj(), lambda t: t.requires_grad_()),
    ],
)
def test_views_come_back_contiguous_and_new(view: object) -> None:
    tensor = view(torch.arange(20.0).reshape(4, 5))  # type: ignore[operator]
    host = HostTier()
    handle = host.put(tensor)
    with torch.no_grad():
        expected = tensor.clone()
        tensor.zero_() if tensor.shape != (4, 5) or tensor.is_contiguous() else None
    first, second = host.get(handle), host.get(handle)
    assert torch.equal(first, expected)
    assert first.is_contiguous()
    assert first.data_ptr() != second.data_ptr()


def test_write_overwrites_in_place() -> None:
    host = HostTier()
    handle = host.put(torch.zeros(2, 3))
    host.write(handle, torch.arange(6.0).reshape(3, 2).T)
    assert torch.equal(host.get(handle), torch.arange(6.0).reshape(3, 2).T)
    assert (host.bytes_out, host.live_bytes, host.peak_bytes) == (48, 24, 24)


@given(st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=12))
def test_the_counters_are_those_of_a_ledger(steps: list[tuple[int, bool]]) -> None:
    host = HostTier()
    lying: list[Handle] = []
    out, peak = 0, 0
    for size, frees in steps:
        if frees and lying:
            host.free(lying.pop(0))
        else:
            lying.append(host.put(torch.zeros(size, dtype=torch.int16)))
            out += 2 * size
        live = sum(handle.nbytes for handle in lying)
        peak = max(peak, live)
        assert (host.bytes_out, host.live_bytes, host.peak_bytes) == (out, live, peak)
    assert sum(transfer.bytes for transfer in host.transfers) == out
    host.close()


def test_the_meter_does_not_count_what_lies_on_the_host() -> None:
    tensor = torch.ones(1000)
    host = HostTier()
    with MemoryMeter("cpu").track(tensor) as meter:
        handle = host.put(tensor)
        assert meter.live_bytes == 4000
        back = host.get(handle)
        assert meter.live_bytes == 8000
        del back
        host.write(handle, tensor)
    assert (meter.peak_bytes, meter.live_bytes) == (8000, 4000)


def test_transfers_have_rising_times() -> None:
    host = HostTier()
    handle = host.put(torch.ones(5))
    host.get(handle)
    host.write(handle, torch.zeros(5))
    assert [(t.kind, t.bytes) for t in host.transfers] == [("out", 20), ("in", 20), ("out", 20)]
    times = [time for t in host.transfers for time in (t.start, t.end)]
    assert times == sorted(times)


def test_the_bytes_are_in_files_and_these_are_removed(own_folder: Path) -> None:
    def held() -> int:
        return sum(path.stat().st_size for path in own_folder.rglob("*") if path.is_file())

    host = HostTier()
    handles = [host.put(torch.ones(n)) for n in (10, 20, 30)]
    assert held() == 240
    host.free(handles[0])
    assert held() == 200
    del host, handles
    gc.collect()
    assert list(own_folder.iterdir()) == []
    with HostTier() as host:
        host.put(torch.ones(10))
    assert (host.live_bytes, list(own_folder.iterdir())) == (0, [])


def test_nothing_is_left_when_python_ends(own_folder: Path) -> None:
    running = {}
    for number, ending in enumerate(["pass", "raise KeyError('an error')", "sys.exit(3)"]):
        folder = own_folder / str(number)
        folder.mkdir()
        program = (
            f"import sys, tempfile, torch\ntempfile.tempdir = {str(folder)!r}\n"
            "from peakmem.tiers import HostTier\nhost = HostTier()\nhost.put(torch.ones(9))\n"
            f"print(len(list(host._folder.iterdir())))\n{ending}\n"
        )
        running[ending, folder] = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    for (ending, folder), process in running.items():
        out, errors = process.communicate()
        assert out == "1\n", ending
        assert "Exception ignored" not in errors, ending
        assert list(folder.iterdir()) == [], ending


def test_a_handle_is_good_until_it_is_freed_and_on_its_own_host_only() -> None:
    host, other = HostTier(), HostTier()
    handle = host.put(torch.ones(3))
    other.put(torch.zeros(3))
    with pytest.raises(ValueError, match="another host returned it"):
        other.get(handle)
    host.free(handle)
    for use in (host.get, host.free, lambda h: host.write(h, torch.ones(3))):
        with pytest.raises(
            ValueError, match=r"handle 0 \(shape \(3,\)\) is not on this host: it was freed"
        ):
            use(handle)
    assert host.live_bytes == 0


@pytest.mark.parametrize(
    "tensor", [torch.ones(4), torch.ones(3, 1), torch.ones(3, dtype=torch.float64)]
)
def test_write_refuses_another_shape_or_dtype(tensor: torch.Tensor) -> None:
    host = HostTier()
    handle = host.put(torch.ones(3))
    with pytest.raises(ValueError, match=r"holds torch.\w+ of shape \(3,\), but write got"):
        host.write(handle, tensor)
    assert torch.equal(host.get(handle), torch.ones(3))


def test_what_is_no_dense_tensor_is_refused() -> None:
    host = HostTier()
    for thing in (3.0, torch.ones(3).to_sparse(), torch.ones(3, device="meta")):
        with pytest.raises(TypeError, match="the host takes"):
            host.put(thing)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"pass what put\(\) returned"):
        host.get(torch.ones(3))  # type: ignore[arg-type]
    host.close()
    with pytest.raises(ValueError, match="is closed"):
        host.put(torch.ones(3))


def test_a_full_disk_raises_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    host = HostTier()

    def full(path: Path, mode: str) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left"):
        host.put(torch.ones(3))
    monkeypatch.undo()
    assert host.live_bytes == 0
    assert list(host._folder.iterdir()) == []


@pytest.mark.parametrize(
    "view",
    [
        *(lambda t: t, lambda t: t.T, lambda t: t[1:, ::2], lambda t: t[:, :1].expand(4, 6)),
        *(lambda t: t[2], lambda t: t[0, 0], lambda t: t[:0], lambda t: t.bfloat16()[1:]),
    ],
)
def test_a_view_is_built_again_from_its_storages_bytes(view: object) -> None:
    tensor = view(torch.arange(20.0).reshape(4, 5))  # type: ignore[operator]
    host = HostTier()
    handle = host.put(whole_storage(tensor))
    assert host.live_bytes == tensor.untyped_storage().nbytes()
    back = rebuild(host.get(handle), layout_of(tensor))
    assert torch.equal(back, tensor)
    assert (back.dtype, back.stride()) == (tensor.dtype, tensor.stride())


def test_the_meter_counts_a_rebuilt_tensor_once() -> None:
    tensor = torch.ones(10, 10).T
    host = HostTier()
    handle = host.put(whole_storage(tensor))
    with MemoryMeter("cpu") as meter:
        back = rebuild(host.get(handle), layout_of(tensor))
    assert meter.live_bytes == back.nbytes
