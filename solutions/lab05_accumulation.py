# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: nbgrader,tags,slideshow,-all
#     notebook_metadata_filter: kernelspec,-jupytext.text_representation.jupytext_version
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-title", "locked": true, "schema_version": 3, "solution": false, "task": false}
# # Lab 5: gradient accumulation
#
# The batch that you want does not fit. The gradient of a batch is a mean over its samples, and a
# mean can be summed up piece by piece. So you run small *micro-batches* one after another, add up
# their gradients, and step once.
#
# **You will be able to** find the largest micro-batch that fits a memory budget, in few runs.
#
# | exercise | minutes | points |
# |---|---|---|
# | 5.1 The largest micro-batch | 15 | 4 |
# | 5.2 In your own words | 5 | 2 |

# %% nbgrader={"grade": false, "grade_id": "lab05-setup", "locked": true, "schema_version": 3, "solution": false, "task": false}
import peakmem

peakmem.lab("lab05_accumulation")

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-largest_micro_batch-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.1 The largest micro-batch (4 points, 15 minutes)
#
# Small micro-batches waste time: each run pays the same fixed cost for less work. So you want the
# largest one that fits. The only sure way to know whether `m` samples fit is to run them.
#
# Write `largest_micro_batch(run, upper)`:
# - `run(m)` runs a micro-batch of `m` samples, and raises `peakmem.OutOfMemory` where they do not
#   fit. If `m` samples fit, so do fewer.
# - Return the largest `m` in `1..upper` that fits, or `0` where not even one does.
# - Runs are slow: call `run` at most `ceil(log2(upper)) + 2` times (1 of the 4 points).
# - Any other error than `OutOfMemory` is a bug of the model. Let it pass through.
#
# *Example:* with `upper = 10` and room for 6 samples, the answer is 6.
#
# **Predict first.** How many runs does your search need for `upper = 1024`?

# %%
predicted_runs = None  # your prediction, a number

# %% nbgrader={"grade": false, "grade_id": "lab05-largest_micro_batch-solution", "locked": false, "schema_version": 3, "solution": true, "task": false}
from collections.abc import Callable


def largest_micro_batch(run: Callable[[int], object], upper: int) -> int:
    """Return the largest m in 1..upper for which run(m) fits, 0 where none does."""
    ### BEGIN SOLUTION
    fits, too_large = 0, upper + 1
    while too_large - fits > 1:
        middle = (fits + too_large) // 2
        try:
            run(middle)
        except peakmem.OutOfMemory:
            too_large = middle
        else:
            fits = middle
    return fits
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "lab05-largest_micro_batch-check", "locked": true, "points": 0, "schema_version": 3, "solution": false, "task": false}
# Self-check of 5.1, the largest micro-batch
def run_with_room_for(samples):
    """Return a run(m) that fits up to `samples` samples, and the list of the sizes it was given."""
    sizes = []

    def run(m):
        sizes.append(m)
        if m > samples:
            raise peakmem.OutOfMemory(f"{m} samples do not fit")

    return run, sizes


run, sizes = run_with_room_for(6)
found = largest_micro_batch(run, 10)
assert found == 6, f"6 samples fit and 7 do not, but your search returned {found}"
run, sizes = run_with_room_for(0)
found = largest_micro_batch(run, 10)
assert found == 0, f"nothing fits, so the answer is 0, but your search returned {found}"
run, sizes = run_with_room_for(700)
found = largest_micro_batch(run, 1024)
assert found == 700, f"700 samples fit and 701 do not, but your search returned {found}"
assert len(sizes) <= 12, f"at most 12 runs are allowed for 1024 sizes; yours took {len(sizes)}"
print(f"Largest micro-batch found in {len(sizes)} runs; you predicted {predicted_runs}.")

# %% nbgrader={"grade": true, "grade_id": "lab05-largest_micro_batch", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
# Exercise 5.1, 4 points: hidden cases are run here when your instructor grades the lab.
### BEGIN HIDDEN TESTS
from autograder.stock import score

score("lab05-largest_micro_batch", globals())
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-explain-about", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## 5.2 In your own words (2 points, 5 minutes)
#
# A friend says: "I use micro-batches of one sample, so my model of any size fits." In two or three
# sentences: what does accumulation make smaller, and what does it leave as it was?

# %% [markdown] nbgrader={"grade": true, "grade_id": "lab05-explain", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# ### BEGIN SOLUTION
# Accumulation makes the activations smaller: they grow with the samples in flight. The weights,
# their gradients and the optimizer's state do not depend on the batch and stay as they were.
# ### END SOLUTION

# %% [markdown] nbgrader={"grade": false, "grade_id": "lab05-end", "locked": true, "schema_version": 3, "solution": false, "task": false}
# ## What you should now be able to say
#
# - The largest micro-batch that fits is found by halving: `log2` of the range, not the range.
# - Only *out of memory* means "smaller, please". Every other error is a bug.
