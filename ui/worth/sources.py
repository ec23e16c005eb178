"""What the panels of ablations and sweeps are made of: their markup. Nothing here needs Gradio, so that
a report is the same panel in a file of its own."""

_TEMPLATE = """
<section class="td-worth" aria-labelledby="td-{kind}-title">
  <header><h2 id="td-{kind}-title">{title}</h2>{form}
  <button type="button" class="td-worth-begin">{begin}</button>
  <button type="button" class="td-worth-stop" hidden>Stop</button>
  <button type="button" class="td-worth-again" hidden>Go on</button>
  <span class="td-worth-link" hidden><a class="td-worth-address"></a></span></header>
  <p class="td-worth-headline"></p>
  <p class="td-worth-sentence" role="status"></p>
  <progress class="td-worth-progress" max="1" value="0" aria-label="Runs of this {what}" hidden></progress>
  <p class="td-worth-doing"></p>
  <p class="td-worth-failure td-failure" role="alert"></p>
  <div class="td-worth-result"></div>
</section>
"""


def worth_template() -> str:
    """The markup of an ablation."""
    return _TEMPLATE.format(
        kind="worth", title="What is each worth?", form="", begin="Measure each choice", what="ablation"
    )


def sweep_template(form: str = "") -> str:
    """The markup of a sweep. `form`: where what is swept is chosen."""
    return _TEMPLATE.format(kind="sweep", title="Sweep", form=form, begin="Measure", what="sweep")
