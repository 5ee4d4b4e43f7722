"""Plots show the data they are given, label both axes, and leave nothing out of the picture."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from peakmem.show import plots


@pytest.fixture
def ax():
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


FP4 = [-6, -4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4, 6]
FP4_GAPS = [(-6, -4, 2), (-4, -2, 1), (-2, 2, 0.5), (2, 4, 1), (4, 6, 2)]
CURVES = {
    "fp32": ([2.0**-149, 2.0**-126, 2.0**127], [1.0, 2.0**-23, 2.0**-23]),
    "bf16": ([2.0**-133, 2.0**-126, 2.0**127], [1.0, 2.0**-7, 2.0**-7]),
    "fp16": ([2.0**-24, 2.0**-14, 2.0**15], [1.0, 2.0**-10, 2.0**-10]),
    "fp8 E4M3": ([2.0**-9, 2.0**-6, 2.0**8], [1.0, 2.0**-3, 2.0**-3]),
    "fp8 E5M2": ([2.0**-16, 2.0**-14, 2.0**15], [1.0, 2.0**-2, 2.0**-2]),
}


def draw_number_line(ax):
    return plots.number_line(ax, FP4, FP4_GAPS, label="number")


def draw_relative_spacing(ax):
    return plots.relative_spacing(ax, CURVES)


def draw_running_sum(ax):
    sums = {"exact": 0.01 * np.arange(4001), "fp16": np.minimum(0.01 * np.arange(4001), 32)}
    return plots.running_sum(ax, sums, stalls_at=32.0)


def draw_memory_over_length(ax):
    curves = {"standard": [2.0, 6.0, 20.0], "flash": [2.0, 3.0, 4.0]}
    return plots.memory_over_length(
        ax, [1, 2048, 4096], curves, limit_gb=16.0, limit_name="V100-16GB"
    )


def draw_stacked_bars(ax):
    bars = {"fp32": {"weights": 4, "moments": 8}, "mixed": {"weights": 2, "copy": 4, "moments": 8}}
    return plots.stacked_bars(ax, bars, label="bytes per parameter", limit=20, limit_name="V100")


def draw_live_timelines(ax):
    curves = {"foreach": [4.0, 4.5, 5.0, 4.0], "fused": [4.0, 4.0]}
    return plots.live_timelines(ax, curves, unit="MiB")


def draw_peak_over_segments(ax):
    return plots.peak_over_segments(ax, [1, 2, 4], {"predicted": [5, 4, 5], "measured": [7, 6, 7]})


def draw_time_against_memory(ax):
    steps = {"equal": [(8, 5.0), (12, 3.0)], "planned": [(6, 4.0), (12, 3.0)]}
    return plots.time_against_memory(ax, steps, unit="MiB")


def draw_loss_curves(ax):
    return plots.loss_curves(ax, {"SGD": [3.0, 2.5, 2.0], "Adam": [3.0, 1.0, 0.5]})


def draw_peak_over_batch(ax):
    line = ([0, 32], [6.0, 46.0])
    return plots.peak_over_batch(ax, [4, 8, 32], [11.0, 16.0, 46.0], line, budget=24, unit="MiB")


def draw_time_per_sample(ax):
    return plots.time_per_sample(ax, [1, 2, 4, 8], [12.0, 8.0, 5.0, 4.0])


def draw_gradient_errors(ax):
    return plots.gradient_errors(ax, {"right": 1e-16, "no division": 4.0})


LANES = {
    "compute": [
        ("forward", "0", 0.0, 1.0),
        ("forward", "1", 1.0, 2.0),
        ("backward", "1", 2.0, 4.0),
    ],
    "link": [("out", "0", 1.0, 1.5), ("in", "0", 3.0, 3.5)],
}


def draw_gantt(ax):
    return plots.gantt(ax, LANES, unit="ms")


EXPONENTS = {
    "now": [-20.0, -11.5, -11.25, -3.0, -3.0],
    "scaled": [-4.0, 4.5, 4.75, 13.0, 13.0, 13.0],
}


def draw_gradient_histogram(ax):
    return plots.gradient_histogram(ax, EXPONENTS, {"float16": (-24, 16), "bfloat16": (-133, 128)})


def draw_break_even(ax):
    curves = {"A100": [312.0, 31.2, 3.12], "H100": [989.0, 98.9, 9.89]}
    return plots.break_even(ax, [1e3, 1e4, 1e5], curves, {"PCIe 4": 32.0})


every_plot = pytest.mark.parametrize(
    "draw",
    [
        draw_stacked_bars,
        draw_live_timelines,
        draw_loss_curves,
        draw_peak_over_segments,
        draw_time_against_memory,
        draw_peak_over_batch,
        draw_time_per_sample,
        draw_gradient_errors,
        draw_gantt,
        draw_gradient_histogram,
        draw_break_even,
        draw_number_line,
        draw_relative_spacing,
        draw_running_sum,
        draw_memory_over_length,
    ],
)


@every_plot
def test_a_plot_returns_its_axes_labelled(ax, draw):
    assert draw(ax) is ax
    assert ax.get_xlabel()
    assert ax.get_ylabel() or not len(ax.get_yticks()) or ax.containers  # bars have names


@every_plot
def test_nothing_is_clipped_and_all_text_is_large_enough(ax, draw):
    draw(ax)
    ax.figure.canvas.draw()
    width, height = ax.figure.canvas.get_width_height()
    drawn = ax.get_tightbbox()
    assert 0 <= drawn.x0 < drawn.x1 <= width
    assert 0 <= drawn.y0 < drawn.y1 <= height
    assert all(text.get_fontsize() >= 10 for text in ax.findobj(Text) if text.get_text())


def test_a_number_line_has_a_tick_for_each_number_and_each_gap_written(ax):
    draw_number_line(ax)
    (ticks,) = ax.collections
    assert sorted(segment[0][0] for segment in ticks.get_segments()) == FP4
    assert [text.get_text() for text in ax.texts] == ["2", "1", "0.5", "1", "2"]
    colours = [text.get_color() for text in ax.texts]
    assert colours == colours[::-1]
    assert all(a != b for a, b in pairwise(colours))


def test_a_number_line_needs_no_gaps(ax):
    plots.number_line(ax, np.array(FP4))
    assert not ax.texts
    assert not ax.get_title()


def test_spacing_curves_show_their_data_on_axes_of_powers_of_two(ax):
    draw_relative_spacing(ax)
    for line, (name, (values, spacings)) in zip(ax.lines, CURVES.items(), strict=True):
        assert line.get_label() == name
        assert list(line.get_xdata()) == values
        assert list(line.get_ydata()) == spacings
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert len(ticks) >= 4
    assert all(np.log2(tick) % 32 == 0 for tick in ticks)


def test_curves_differ_without_their_colour(ax):
    draw_relative_spacing(ax)
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in ax.lines}) == len(CURVES)
    assert len({to_rgb(line.get_color()) for line in ax.lines}) == len(CURVES)


def test_a_running_sum_begins_at_no_additions_and_marks_the_stall(ax):
    draw_running_sum(ax)
    exact, fp16, stall = ax.lines
    assert exact.get_xdata()[0] == 0
    assert fp16.get_ydata()[-1] == 32
    assert set(stall.get_ydata()) == {32.0}
    assert [text.get_text() for text in ax.texts] == ["stalls at 32"]


def test_a_running_sum_needs_no_stall(ax):
    plots.running_sum(ax, {"fp32": [0.0, 1.0]})
    assert len(ax.lines) == 1
    assert not ax.texts


def test_memory_over_length_shows_its_data_and_names_the_limit(ax):
    draw_memory_over_length(ax)
    standard, flash, limit = ax.lines
    assert list(standard.get_xdata()) == [1, 2048, 4096]
    assert list(flash.get_ydata()) == [2.0, 3.0, 4.0]
    assert set(limit.get_ydata()) == {16.0}
    assert [text.get_text() for text in ax.texts] == ["V100-16GB"]


def test_memory_over_length_needs_no_limit(ax):
    plots.memory_over_length(ax, [1, 2], {"flash": [1.0, 2.0]})
    assert len(ax.lines) == 1
    assert not ax.texts


def test_stacked_bars_stand_on_one_another_and_name_their_sums(ax):
    draw_stacked_bars(ax)
    weights, moments, copy = ax.containers
    assert [bar.get_width() for bar in copy] == [0, 4]
    assert [bar.get_x() for bar in moments] == [4, 2]
    assert [bar.get_x() for bar in copy] == [12, 10]
    assert [text.get_text() for text in ax.texts] == ["12", "14"]
    assert ax.yaxis_inverted()
    assert ax.lines[0].get_xdata() == [20, 20]
    assert ax.get_xlim()[1] > 20
    assert len({bar[0].get_facecolor() for bar in (weights, moments, copy)}) == 3


def test_stacked_bars_need_no_limit(ax):
    plots.stacked_bars(ax, {"a": {"x": 1.0}}, label="GB")
    assert not ax.lines


def test_timelines_mark_each_peak(ax):
    draw_live_timelines(ax)
    foreach, foreach_peak, _, fused_peak = ax.lines
    assert list(foreach.get_ydata()) == [4.0, 4.5, 5.0, 4.0]
    assert (list(foreach_peak.get_xdata()), list(foreach_peak.get_ydata())) == ([2], [5.0])
    assert (list(fused_peak.get_xdata()), list(fused_peak.get_ydata())) == ([0], [4.0])
    assert [text.get_text() for text in ax.texts] == ["5", "4"]
    assert ax.get_ylim()[0] == 0


def test_peaks_over_segments_are_all_drawn(ax):
    draw_peak_over_segments(ax)
    assert [list(line.get_ydata()) for line in ax.lines] == [[5, 4, 5], [7, 6, 7]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "2", "4"]


def test_a_budget_buys_the_time_of_the_last_step_until_the_next(ax):
    draw_time_against_memory(ax)
    assert list(ax.lines[0].get_xdata())[:2] == [8, 12]
    assert list(ax.lines[0].get_ydata()) == [5.0, 3.0, 3.0]
    assert {line.get_drawstyle() for line in ax.lines} == {"steps-post"}


def test_of_two_equal_plans_the_lower_curve_is_the_wider_one(ax):
    steps = [(8, 5.0), (12, 3.0)]
    plots.time_against_memory(ax, {"yours": steps, "optimum": steps}, unit="MiB")
    below, above = ax.lines
    assert below.get_zorder() <= above.get_zorder()
    assert below.get_linewidth() >= above.get_linewidth() + 1.5
    assert below.get_color() != above.get_color()


def test_loss_curves_show_their_data(ax):
    draw_loss_curves(ax)
    assert [list(line.get_ydata()) for line in ax.lines] == [[3.0, 2.5, 2.0], [3.0, 1.0, 0.5]]


def test_peaks_are_points_beside_their_line_and_the_budget(ax):
    draw_peak_over_batch(ax)
    points, line, budget = ax.lines
    assert (list(points.get_xdata()), list(points.get_ydata())) == ([4, 8, 32], [11.0, 16.0, 46.0])
    assert points.get_linestyle() == "None"
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0, 32], [6.0, 46.0])
    assert set(budget.get_ydata()) == {24}
    assert ax.get_ylim()[0] == 0


def test_time_per_sample_names_each_size(ax):
    draw_time_per_sample(ax)
    assert list(ax.lines[0].get_ydata()) == [12.0, 8.0, 5.0, 4.0]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "4", "8"]
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] > 13, "the highest point is not cut off"


def test_gradient_errors_are_written_at_their_bars(ax):
    draw_gradient_errors(ax)
    assert [bar.get_width() for bar in ax.patches] == [1e-16, 4.0]
    assert ax.patches[0].get_facecolor() != ax.patches[1].get_facecolor()
    assert [text.get_text() for text in ax.texts] == ["1e-16", "4"]
    assert ax.yaxis_inverted()


def test_a_gantt_chart_has_a_lane_for_each_thing_and_a_colour_for_each_kind(ax):
    draw_gantt(ax)
    spans = {
        bars.get_label(): [tuple(path.get_extents().intervalx) for path in bars.get_paths()]
        for bars in ax.collections
    }
    assert spans == {
        "forward": [(0.0, 1.0), (1.0, 2.0)],
        "backward": [(2.0, 4.0)],
        "out": [(1.0, 1.5)],
        "in": [(3.0, 3.5)],
    }
    assert len({tuple(bars.get_facecolor()[0]) for bars in ax.collections}) == 4
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["compute", "link"]
    assert ax.yaxis_inverted()


@pytest.mark.parametrize("first", [-2.0, 0.0, 100.0])
def test_a_gantt_chart_begins_with_its_first_bar(ax, first):
    bars = {"compute": [("forward", "0", first, first + 4)], "link": []}
    plots.gantt(ax, bars, unit="ms")
    assert ax.get_xlim()[0] == first
    assert ax.get_xlim()[1] >= first + 4


def test_a_gantt_chart_may_be_empty(ax):
    with pytest.warns(UserWarning, match="No artists with labels"):  # for the legend
        plots.gantt(ax, {"compute": [], "link": []}, unit="ms")
    assert ax.get_xlim()[0] == 0


def counted(patch):
    """The height of each bin of an outline that a histogram drew, read off its corners."""
    corners = patch.get_xy()
    return [y for (x, y), (right, level) in pairwise(corners) if level == y and right > x]


def test_a_gradient_histogram_counts_as_numpy_does(ax):
    draw_gradient_histogram(ax)
    outlines = {patch.get_label(): patch for patch in ax.patches if patch.get_label() in EXPONENTS}
    for name, values in EXPONENTS.items():
        counts, edges = np.histogram(values, bins=60)
        assert counted(outlines[name]) == list(counts)
        assert outlines[name].get_xy()[:, 0].min() == edges[0]
        assert outlines[name].get_xy()[:, 0].max() == edges[-1]
        # And a value that is moved or lost is seen.
        assert list(np.histogram([*values[:-1], values[0]], bins=edges)[0]) != list(counts)
        assert list(np.histogram(values[1:], bins=edges)[0]) != list(counts)


def test_a_gradient_histogram_has_a_bar_for_each_range_below_the_counts(ax):
    draw_gradient_histogram(ax)
    feet = {bar.get_label(): bar.get_paths()[0].get_extents() for bar in ax.collections}
    assert feet["float16"].intervalx.tolist() == [-24, 16]
    assert feet["bfloat16"].intervalx.tolist() == [-133, 128]
    assert feet["bfloat16"].y1 <= feet["float16"].y0 < feet["float16"].y1 <= 0
    assert min(ax.get_yticks()) >= 0


def test_break_even_shows_curves_and_links(ax):
    draw_break_even(ax)
    assert list(ax.lines[0].get_ydata()) == [312.0, 31.2, 3.12]
    assert set(ax.lines[2].get_ydata()) == {32.0}
    assert [text.get_text() for text in ax.texts] == ["PCIe 4"]
