"""The style sheet of all calculators, for projectors, phones and JupyterLab's themes.

Controls and text are on the left, the guess and the picture on the right, or below on a narrow
page. Colours come from the theme; without one (VS Code, a still page), text is dark on white.
"""

from __future__ import annotations

__all__ = ["MANY", "STYLE"]

#: From this number of controls on, they are in two columns.
MANY = 9

STYLE = """<style>
.peakmem-calculator {
  --jp-widgets-font-size: 18px;
  --jp-widgets-inline-height: 30px;
  --jp-widgets-margin: 1px;
  color: var(--jp-ui-font-color0, #222222);
  background: var(--jp-layout-color0, #ffffff);
  font-family: sans-serif;
  font-size: 18px;
  line-height: 1.3;
}
.peakmem-calculator .peakmem-sides {
  display: flex; flex-flow: row wrap; align-items: flex-start; gap: 4px 16px; overflow: visible;
}
/* A notebook on a screen of 1280 pixels has 1085: what JupyterLab's bars leave of it. */
.peakmem-calculator .peakmem-left {
  flex: 1 1 min(440px, 100%); min-width: 0; max-width: 640px;
}
.peakmem-calculator .peakmem-right { flex: 0 0 min(624px, 100%); }
.peakmem-calculator .peakmem-controls { display: grid; grid-template-columns: 1fr; gap: 0 12px; }
@media (min-width: 600px) {
  .peakmem-calculator .peakmem-many { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  .peakmem-calculator .peakmem-many > .peakmem-whole { grid-column: 1 / -1; }
}
.peakmem-calculator .widget-html:has(> .widget-html-content:empty) { display: none; }
.peakmem-calculator .peakmem-row { display: flex; flex-flow: row wrap; overflow: visible; }
.peakmem-calculator .widget-inline-hbox:not(.widget-html) {
  width: auto; max-width: 460px; min-width: 0;
}
.peakmem-calculator .widget-inline-hbox.peakmem-whole:not(.widget-html) { max-width: none; }
.peakmem-calculator .widget-inline-hbox > .widget-label {
  flex: 0 0 auto; width: 186px; text-align: left;
}
.peakmem-calculator .peakmem-many .widget-inline-hbox > .widget-label {
  width: auto; min-width: 76px;
}
.peakmem-calculator .widget-checkbox > .widget-label { display: none; }
.peakmem-calculator td { vertical-align: baseline; }
.peakmem-calculator td:first-child { white-space: nowrap; }
.peakmem-calculator .widget-inline-hbox > .widget-label,
.peakmem-calculator .widget-label-basic, .peakmem-calculator .widget-readout,
.peakmem-calculator .widget-html-content {
  color: inherit; font-family: inherit; font-size: 18px;
}
.peakmem-calculator .widget-html-content { line-height: inherit; }
.peakmem-calculator .widget-readout { min-width: 52px; }
.peakmem-calculator select, .peakmem-calculator input[type] {
  min-width: 0; font-family: inherit; font-size: 18px;
  color: var(--jp-ui-font-color0, #222222);
  background-color: var(--jp-layout-color0, #ffffff);
}
/* The widgets' own arrow is a dark picture, which a dark theme swallows. */
.peakmem-calculator .widget-dropdown > select {
  padding-right: 24px;
  background-image: linear-gradient(45deg, transparent 50%, currentColor 50%),
    linear-gradient(135deg, currentColor 50%, transparent 50%);
  background-position: right 13px center, right 7px center;
  background-repeat: no-repeat;
  background-size: 6px 6px;
}
.peakmem-calculator input::placeholder { color: inherit; opacity: 0.75; }
.peakmem-calculator .jupyter-button {
  width: auto; padding: 0 10px; font-family: inherit; font-size: 18px;
  color: var(--jp-ui-font-color0, #222222);
  background-color: var(--jp-layout-color2, #eeeeee);
}
.peakmem-calculator .jupyter-button.mod-active {
  text-decoration: underline; font-weight: bold;
}
.peakmem-calculator .peakmem-row .peakmem-guess.widget-text { width: 130px; }
.peakmem-calculator .peakmem-bits { display: grid; grid-template-columns: repeat(16, 1fr); }
.peakmem-calculator .peakmem-bits .jupyter-button { height: 38px; padding: 0; margin: 1px; }
.peakmem-calculator p { margin: 4px 0; }
.peakmem-calculator :is(pre, code) { font-size: 18px; color: inherit; background: transparent; }
.peakmem-calculator table { border-collapse: collapse; margin: 4px 0; color: inherit; }
.peakmem-calculator th, .peakmem-calculator td { padding: 1px 12px 1px 0; font-size: 18px; }
.peakmem-calculator .peakmem-nowrap td { white-space: nowrap; }
.peakmem-calculator .peakmem-long { max-height: 480px; overflow: auto; }
.peakmem-calculator [role=alert] { border-left: 6px solid #D55E00; padding: 4px 10px; }
</style>"""
