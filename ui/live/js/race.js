// The race is a replay of both arms at once, from the start of the prefill of their first run, without load and
// compilation: the columns that were pulled are read again by a clock, at their true speed or a multiple of it. Texts and
// charts show what there was at a moment, to which a slider leads too.

/** @import { makeTexts } from './texts.js' */
import { seconds, setText } from '../../components/js/dom.js';
import { TOKEN_COLUMNS, lowerBound, upperBound } from './columns.js';

export const RACE_TAIL = 4000;

// Characters that an arm had written after some seconds. `pace`: { t, n }, characters at the times when text came;
// `firstAt`: when the first token came. Between two times they are shared out evenly.
/** @param {Live.Pace} pace @param {number} firstAt @param {number} seconds */
export function charactersAt(pace, firstAt, seconds) {
  const next = lowerBound(pace.t, seconds);
  if (next >= pace.t.length) return pace.n.length ? pace.n[pace.n.length - 1] : 0;
  const from = next ? [pace.t[next - 1], pace.n[next - 1]] : [firstAt, 0];
  if (seconds <= from[0]) return from[1];
  return Math.floor(from[1] + (pace.n[next] - from[1]) * (seconds - from[0]) / (pace.t[next] - from[0]));
}

/** The columns of an arm as they were after some seconds. @param {Live.Series} columns @param {number} seconds @returns {Live.Series} */
export function columnsAt(columns, seconds) {
  const tokens = upperBound(columns.t, seconds), samples = upperBound(columns.st, seconds), cut = { ...columns };
  for (const key of TOKEN_COLUMNS) cut[key] = columns[key].slice(0, tokens);
  for (const key of ['st', 'sm']) cut[key] = columns[key].slice(0, samples);
  return cut;
}

// texts: shows a part of each text. marks(seconds, columns): points at that moment on the charts, which show these
// columns; null, null for the whole run. speed: a list of multiples.
/**
 * @param {HTMLButtonElement} button @param {HTMLInputElement} slider @param {HTMLElement} clock @param {HTMLSelectElement} speed
 * @param {ReturnType<typeof makeTexts>} texts @param {(at: number | null, columns: Live.Series[] | null) => void} marks
 */
export function makeRace(button, slider, clock, speed, texts, marks) {
  let head = null, series = [], length = 0, at = 0, playing = false, before = 0;

  /** @param {Live.Head} newHead @param {Live.Series[]} newSeries */
  function ready(newHead, newSeries) {
    head = newHead; series = newSeries;
    length = Math.max(0, ...series.map(columns => columns.t.length ? columns.t[columns.t.length - 1] : 0));
    const able = length > 0 && head.unit !== 'forward' && head.arms.some(arm => arm.pace.t.length);
    button.disabled = slider.disabled = speed.disabled = !able;
    slider.max = String(length);
    if (able) { at = length; slider.value = String(length); tell(); }
  }

  function tell() {
    setText(button, playing ? '\u275A\u275A Pause' : '\u25B6 Race');
    const done = head ? head.arms.filter((_, i) => series[i].t.length && at >= series[i].t[series[i].t.length - 1]).map(arm => arm.name) : [];
    const said = at < length && done.length ? ', ' + done.join(' and ') + ' done' : '';
    setText(clock, length ? at.toFixed(length >= 100 ? 0 : length >= 10 ? 1 : 2) + ' of ' + seconds(length) + said : '');
    slider.setAttribute('aria-valuetext', seconds(at));
  }

  function show() {
    if (at >= length) { texts.whole(); marks(null, null); } else {
      head.arms.forEach((arm, i) => texts.upTo(i, series[i].t.length ? charactersAt(arm.pace, series[i].t[0], at) : 0));
      marks(at, series.map(columns => columnsAt(columns, at)));
    }
    tell();
  }

  function frame(now) {
    if (!playing || !element.isConnected) return;
    const passed = Math.max(0, now - before); // a frame may have begun before the button was pressed
    at = Math.min(length, at + passed / 1000 * Number(speed.value));
    before = now;
    if (at >= length) playing = false;
    slider.value = String(at);
    show();
    if (playing) requestAnimationFrame(frame);
  }

  function clear() {
    playing = false; length = 0; at = 0; head = null; series = [];
    button.disabled = slider.disabled = speed.disabled = true;
    slider.value = '0';
    marks(null, null);
    tell();
  }

  function toggle() {
    if (button.disabled) return;
    playing = !playing;
    if (playing) {
      if (at >= length) at = 0;
      before = performance.now();
      requestAnimationFrame(frame);
    }
    show();
  }

  // The end of the run, with the whole texts.
  function whole() {
    if (!head) return;
    playing = false;
    at = length;
    slider.value = String(at);
    show();
  }

  /** To the next token of any arm, or to the one before. @param {number} direction 1 or -1 */
  function step(direction) {
    const nearest = series.map(({ t }) => (direction > 0 ? t[upperBound(t, at)] ?? length : t[lowerBound(t, at) - 1] ?? 0));
    playing = false;
    at = direction > 0 ? Math.min(length, ...nearest) : Math.max(0, ...nearest);
    slider.value = String(at);
    show();
  }

  button.addEventListener('click', toggle);
  slider.addEventListener('input', () => { playing = false; at = Number(slider.value); show(); });
  slider.addEventListener('keydown', event => {
    const direction = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    step(direction);
  });
  return { ready, clear, toggle, whole, step, state: () => ({ able: !button.disabled, playing, at: at < length ? at : null, clock: clock.textContent }) };
}
