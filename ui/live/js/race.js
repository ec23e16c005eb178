// The race: both arms at once at their true speed, from the start of the prefill of their first run, without load and
// compilation. A slider moves through the run; texts and charts follow.

const RACE_TAIL = 4000;

// Characters that an arm had written after some seconds. `pace`: { t, n }, characters at the times when text came;
// `firstAt`: when the first token came. Between two times they are shared out evenly.
function charactersAt(pace, firstAt, seconds) {
  const next = lowerBound(pace.t, seconds);
  if (next >= pace.t.length) return pace.n.length ? pace.n[pace.n.length - 1] : 0;
  const from = next ? [pace.t[next - 1], pace.n[next - 1]] : [firstAt, 0];
  if (seconds <= from[0]) return from[1];
  return Math.floor(from[1] + (pace.n[next] - from[1]) * (seconds - from[0]) / (pace.t[next] - from[0]));
}

// texts: shows a part of each text. marks(seconds): points at that moment on the charts, null for none.
function makeRace(button, slider, clock, texts, marks) {
  let head = null, series = [], length = 0, at = 0, playing = false, before = 0;

  function ready(newHead, newSeries) {
    head = newHead; series = newSeries;
    length = Math.max(0, ...series.map(columns => columns.t.length ? columns.t[columns.t.length - 1] : 0));
    const able = length > 0 && head.unit !== 'forward' && head.arms.some(arm => arm.pace.t.length);
    button.disabled = slider.disabled = !able;
    slider.max = length;
    if (able) { at = length; slider.value = length; tell(); }
  }

  function tell() {
    setText(button, playing ? '\u275A\u275A Pause' : '\u25B6 Race');
    const done = head ? head.arms.filter((_, i) => series[i].t.length && at >= series[i].t[series[i].t.length - 1]).map(arm => arm.name) : [];
    const said = at < length && done.length ? ', ' + done.join(' and ') + ' done' : '';
    setText(clock, length ? at.toFixed(1) + ' of ' + seconds(length) + said : '');
    slider.setAttribute('aria-valuetext', seconds(at));
  }

  function show() {
    if (at >= length) { texts.whole(); marks(null); } else {
      head.arms.forEach((arm, i) => texts.upTo(i, series[i].t.length ? charactersAt(arm.pace, series[i].t[0], at) : 0));
      marks(at);
    }
    tell();
  }

  function step(now) {
    if (!playing || !element.isConnected) return;
    at = Math.min(length, at + (now - before) / 1000);
    before = now;
    if (at >= length) playing = false;
    slider.value = at;
    show();
    if (playing) requestAnimationFrame(step);
  }

  function clear() {
    playing = false; length = 0; at = 0; head = null; series = [];
    button.disabled = slider.disabled = true;
    slider.value = 0;
    marks(null);
    tell();
  }

  button.addEventListener('click', () => {
    playing = !playing;
    if (playing) {
      if (at >= length) at = 0;
      before = performance.now();
      requestAnimationFrame(step);
    }
    show();
  });
  slider.addEventListener('input', () => { playing = false; at = Number(slider.value); show(); });
  return { ready, clear };
}
