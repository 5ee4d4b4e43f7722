"""Figures have a description, and measurements wait for predictions."""

import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from peakmem.labs import predicted, show_figure


@pytest.fixture
def shell():
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.mark.usefixtures("shell")
def test_a_figure_is_shown_once_with_its_description():
    with capture_output() as captured:
        figure, _ = plt.subplots()
        show_figure(figure, "A line that rises.")
    (output,) = captured.outputs
    assert output.metadata["image/png"]["alt"] == "A line that rises."
    assert not plt.fignum_exists(figure.number), "else the inline backend would show it again"


def test_a_figure_without_a_description_is_refused():
    figure, _ = plt.subplots()
    with pytest.raises(ValueError, match="alt is empty"):
        show_figure(figure, " ")
    plt.close(figure)


def test_a_cell_waits_until_each_prediction_is_made(capsys):
    assert not predicted(0, None, question="How many?")
    assert "waits for your prediction: How many?" in capsys.readouterr().out
    assert predicted(0, False, "")
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match="no prediction was given"):
        predicted()
