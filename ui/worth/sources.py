"""The markup of the panels of ablations, sweeps and advice. Nothing here needs Gradio, so that a report is the same
panel in a file of its own."""

_TEMPLATE = """
<section class="td-worth{classes}" aria-labelledby="td-{kind}-title">
  <header><h2 id="td-{kind}-title">{title}</h2>{form}
  <button type="button" class="td-worth-begin">{begin}</button>
  <button type="button" class="td-worth-stop" hidden>Stop</button>
  <button type="button" class="td-worth-again" hidden>Go on</button>
  <span class="td-worth-link" hidden><a class="td-worth-address"></a></span></header>
  <p class="td-worth-refused td-failure" role="alert"></p>
  <p class="td-worth-headline"></p>
  <p class="td-worth-sentence" role="status"></p>
  <progress class="td-worth-progress" max="1" value="0" aria-label="{progress}" hidden></progress>
  <p class="td-worth-doing"></p>
  <p class="td-worth-failure td-failure" role="alert"></p>
  <div class="td-worth-result"></div>
</section>
"""


def worth_template() -> str:
    """The markup of an ablation."""
    return _template("worth", "What is each worth?", "Measure each choice", "Runs of this ablation")


def sweep_template(form: str = "") -> str:
    """The markup of a sweep. `form`: where what is swept is chosen."""
    return _template("sweep", "Sweep", "Measure", "Runs of this sweep", form)


def advise_template() -> str:
    """The markup of advice."""
    return _template("advise", "What should I use?", "Find it", "The budget that is spent", classes=" td-advise")


def _template(kind: str, title: str, begin: str, progress: str, form: str = "", classes: str = "") -> str:
    """`begin`: the text of its button; `progress`: what its bar shows."""
    return _TEMPLATE.format(kind=kind, title=title, begin=begin, progress=progress, form=form, classes=classes)
