"""The markup of the panel. Nothing here needs Gradio, so that a report is the same panel in a file of its own."""

ADVISE_TEMPLATE = """
<section class="td-worth td-advise" aria-labelledby="td-advise-title">
  <header><h2 id="td-advise-title">What should I use?</h2>
  <button type="button" class="td-worth-begin">Find it</button>
  <button type="button" class="td-worth-stop" hidden>Stop</button>
  <button type="button" class="td-worth-again" hidden>Go on</button>
  <span class="td-worth-link" hidden><a class="td-worth-address"></a></span></header>
  <p class="td-worth-headline"></p>
  <p class="td-worth-sentence" role="status"></p>
  <progress class="td-worth-progress" max="1" value="0" aria-label="The budget that is spent" hidden></progress>
  <p class="td-worth-doing"></p>
  <p class="td-worth-failure td-failure" role="alert"></p>
  <div class="td-worth-result"></div>
</section>
"""
