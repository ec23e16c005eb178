// One bar for the whole run: its parts as wide as they take or should take, what is done now, and how long it still goes.

import { el, setText } from './dom.js';

/** @param {HTMLElement} box */
export function makePhaseBar(box) {
  const label = el('b', ''), parts = el('div', 'td-run-parts'), rule = el('span', 'td-run-rule');
  box.append(label, parts, rule);
  /** @type {Live.PhaseBar | null} */
  let bar = null;
  let heardAt = 0, over = false;
  /** @type {HTMLElement | null} */
  let fill = null;
  const since = () => over ? 0 : (performance.now() - heardAt) / 1000;

  /** @param {Live.PhaseBar | null} newBar @param {boolean} ended */
  function take(newBar, ended) {
    bar = newBar;
    heardAt = performance.now();
    over = ended;
    box.hidden = !bar;
    if (!bar) return;
    fill = null;
    const widths = widthsOf(bar.parts);
    parts.replaceChildren(...bar.parts.map((part, i) => {
      const one = el('span', 'td-run-part ' + part.state);
      one.style.flexGrow = String(widths[i]);
      if (part.state === 'now') one.append(fill = el('i', ''));
      one.append(el('span', '', part.text));
      one.title = part.text;
      return one;
    }));
    setText(rule, bar.rule);
    tick();
  }

  function tick() {
    if (!bar) return;
    setText(label, bar.label || leftText(bar, since()));
    const now = bar.parts.find(part => part.state === 'now');
    if (fill && now) fill.style.width = now.expected_s ? (100 * Math.min(0.97, (now.spent_s + since()) / now.expected_s)).toFixed(1) + '%' : '0';
  }

  // What the browser's tab says while the run is under way.
  function title() {
    if (!bar || bar.label) return '';
    const now = bar.parts.find(part => part.state === 'now');
    return bar.left_s === null || !now ? now?.text ?? '' : atLeast(bar.left_s - since());
  }

  return { take, tick, title, clear: () => take(null, true) };
}

/** @param {Pick<Live.PhaseBar, 'left_s' | 'most_s' | 'spent_s' | 'parts'>} bar @param {number} sinceS */
export function leftText(bar, sinceS) {
  if (bar.left_s !== null) return 'About ' + atLeast(bar.left_s - sinceS) + ' to go';
  if (bar.most_s !== null) return 'Pairs: at most ' + atLeast(bar.most_s - sinceS);
  if (!bar.parts.some(part => part.state === 'now')) return 'Waiting';
  return 'No earlier run here, ' + Math.floor(bar.spent_s + sinceS) + ' s so far';
}

/** @param {number} seconds */
function atLeast(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  return whole < 90 ? whole + ' s' : Math.round(whole / 60) + ' min';
}

// A part of which nothing is known is as wide as a fifth of the others together, or as any other where nothing is.
/** @param {Pick<Live.Part, 'spent_s' | 'expected_s'>[]} parts */
export function widthsOf(parts) {
  const known = parts.map(part => Math.max(part.spent_s, part.expected_s ?? 0));
  const whole = known.reduce((sum, seconds) => sum + seconds, 0);
  return known.map(seconds => seconds || whole / 5 || 1);
}
