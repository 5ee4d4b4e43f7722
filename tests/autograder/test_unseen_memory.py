"""Memory that counts in no process's size: the sandbox refuses it."""

import pytest

from autograder.base.limits import Limits, ProcessLost
from autograder.sandbox.host.sandbox import Sandbox
from autograder.sandbox.host.unprotected import Unprotected

pytestmark = pytest.mark.sandbox

# Released pages stay in place because they are shared; `Shmem` counts them.
SHARED = """
import mmap
def had(*of):
    try: block = mmap.mmap(*of)
    except OSError: return 0
    for start in range(0, len(block), 2**20):
        block.write(b"x" * 2**20)
        block.madvise(mmap.MADV_DONTNEED, start, 2**20)
    with open("/proc/self/status") as status:
        mapped = next(int(line.split()[1]) for line in status if line.startswith("RssShmem"))
    return len(block) - mapped * 1024
with open("/dev/zero", "r+b") as zero:
    print(had(-1, 2**24), had(zero.fileno(), 2**24))
"""
ADVICE = """
import mmap
block = mmap.mmap(-1, 2**20, flags=mmap.MAP_PRIVATE)
for advice in (mmap.MADV_DONTNEED, 20, 21):  # the last ones are MADV_COLD and MADV_PAGEOUT
    try: print(block.madvise(advice))
    except OSError as error: print(error.strerror)
"""
HONEST = """
import multiprocessing, numpy, torch
print(multiprocessing.Value("i", 3).value, torch.zeros(4).share_memory_().is_shared())
print(numpy.memmap("/tmp/file", mode="w+", shape=3).sum())
with multiprocessing.get_context("fork").Pool(1) as pool: print(pool.map(abs, [-1]))
"""


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as prepared:
        yield prepared


def printed(sandbox, source):
    with sandbox.open() as student:
        return "".join(output.get("text", str(output)) for output in student.run_cell(source))


def test_no_memory_can_be_shared_and_let_go_of(sandbox):
    assert printed(sandbox, SHARED) == "0 0\n"


def test_no_memory_can_be_sent_to_swap(sandbox):
    assert printed(sandbox, ADVICE) == "None\n" + "Function not implemented\n" * 2


def test_huge_pages_are_refused_whether_there_are_any_or_not(sandbox):
    source = "import mmap; mmap.mmap(-1, 2**21, flags=mmap.MAP_PRIVATE | 0x40000)"
    assert "Function not implemented" in printed(sandbox, source)


def test_what_libraries_share_through_files_is_to_be_had(sandbox):
    assert printed(sandbox, HONEST) == "3 True\n0\n[1]\n"


# Like CUDA: addresses for more memory than exists, little of it ever touched.
RESERVES = "import mmap; print(len(mmap.mmap(-1, 2**40, flags=mmap.MAP_PRIVATE | 0x4000)))"


def test_addresses_without_end_are_for_machines_with_a_gpu(sandbox):
    assert "Cannot allocate memory" in printed(sandbox, RESERVES)
    with Sandbox(limits=Limits(memory_bytes=256 * 2**20), preload=()) as other:
        other.has_gpu = True
        assert printed(other, RESERVES) == f"{2**40}\n"
        assert printed(other, SHARED) == f"{2**24} {2**24}\n"
        with other.open() as student, pytest.raises(ProcessLost, match=r"0\.2 GiB of memory"):
            student.run_cell("block = bytearray(b'x' * 2**29)\nwhile True: pass")


def test_outside_the_same_memory_is_to_be_had():
    # Shows that the tests above would notice a filter that lets all through.
    with Sandbox(backend=Unprotected(), preload=()) as bare:
        assert printed(bare, SHARED) == f"{2**24} {2**24}\n"
        assert printed(bare, ADVICE) == "None\n" * 3
