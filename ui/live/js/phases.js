// How far a run is: one bar for the whole of it, and the phases of each arm with their durations. `tick` advances what goes
// on between two replies.

import { add, badge, button, count, el, seconds, setText } from '../../components/js/dom.js';

/** @param {HTMLElement} box @param {(() => void) | null} press of Stop, which a small window shows here too */
export function makePhaseBar(box, press) {
  const label = add(box, 'b'), parts = add(box, 'div', 'td-run-parts'), rule = add(box, 'span', 'td-run-rule');
  const stop = button('td-run-stop', 'Stop', '', () => press?.());
  box.append(stop);
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
    stop.hidden = !press || ended;
    if (!bar) return;
    fill = null;
    const widths = widthsOf(bar.parts);
    parts.replaceChildren(...bar.parts.map((part, i) => {
      const piece = el('span', 'td-run-part ' + part.state);
      piece.style.flexGrow = String(widths[i]);
      if (part.state === 'now') piece.append(fill = el('i', ''));
      piece.append(el('span', '', part.text));
      piece.title = part.text;
      return piece;
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
  return Math.floor(bar.spent_s + sinceS) + ' s so far';
}

/** @param {number} seconds */
function atLeast(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  return whole < 90 ? whole + ' s' : Math.round(whole / 60) + ' min';
}

// A part of which nothing is known is as wide as a fifth of the others together, or as any other where nothing is.
/** @param {Pick<Live.Part, 'spent_s' | 'expected_s'>[]} parts */
export function widthsOf(parts) {
  const lengths = parts.map(part => Math.max(part.spent_s, part.expected_s ?? 0));
  const whole = lengths.reduce((sum, seconds) => sum + seconds, 0);
  return lengths.map(seconds => seconds || whole / 5 || 1);
}

/** The phases of each arm. @param {HTMLElement} box */
export function makePhases(box) {
  /** @type {Live.Phased | null} */
  let head = null;
  let rows = [], heardAt = 0;

  /** @param {Pick<Live.ArmHead, 'name' | 'label'>[]} arms */
  function build(arms) {
    box.replaceChildren();
    rows = arms.map(arm => {
      const row = el('div', 'td-phases arm-' + arm.name.toLowerCase());
      const steps = el('span', 'td-steps'), bar = el('i', 'td-phase-bar');
      row.append(badge(arm.name), el('b', 'td-label', arm.label), steps, bar);
      box.append(row);
      return { steps, bar, chips: new Map() };
    });
  }

  /** @param {Live.PhaseStep} phase @param {number} nowS @param {number} tokens */
  function phaseText(phase, nowS, tokens) {
    const live = phase.state === 'begin' || phase.state === 'step';
    let text = phase.title + ' ' + seconds(live ? Math.max(phase.seconds, nowS - phase.begin_s) : phase.seconds);
    if (phase.name === 'run' && !(head.quality && !tokens)) text += ', ' + count(tokens) + ' of ' + count(head.max_new_tokens) + (head.unit === 'forward' ? ' passes' : ' tokens');
    else if (live && phase.fraction !== null) text += ', ' + Math.round(100 * phase.fraction) + '%';
    if (phase.wait) text += ', ' + phase.wait;
    if (live && phase.note) text += ' (' + phase.note + ')';
    return phase.state === 'broken' ? '\u2715 ' + text : text;
  }

  // A phase that tells no progress of its own fills its bar by the time that it took before; the last bit is open.
  /** @param {Live.PhaseStep} phase @param {number} nowS */
  function elapsedShare(phase, nowS) {
    return phase.expected_s ? Math.min(0.95, (nowS - phase.begin_s) / phase.expected_s) : 0;
  }

  /** @param {{ t: { length: number } }[]} series @param {boolean} [over] */
  function tick(series, over) {
    if (!head) return;
    box.classList.toggle('td-over', Boolean(over));
    const nowS = head.now_s + (performance.now() - heardAt) / 1000;
    head.arms.forEach((arm, i) => {
      const row = rows[i];
      if (!arm.phases.length) {
        setText(row.steps, over ? 'did not run' : i ? 'waiting for arm ' + head.arms[i - 1].name : 'waiting');
        return;
      }
      if (!row.chips.size) row.steps.replaceChildren();
      for (const phase of arm.phases) {
        let chip = row.chips.get(phase.name);
        if (!chip) {
          chip = el('span', '');
          row.chips.set(phase.name, chip);
          row.steps.append(chip);
        }
        const look = 'td-step ' + phase.state;
        if (chip.className !== look) chip.className = look;
        setText(chip, phaseText(phase, nowS, series[i].t.length));
      }
      const last = arm.phases[arm.phases.length - 1];
      const share = last.name === 'run' ? series[i].t.length / head.max_new_tokens : last.fraction || elapsedShare(last, nowS);
      const width = arm.state === 'working' ? (100 * Math.min(1, share)).toFixed(1) + '%' : '0';
      if (row.bar.style.width !== width) row.bar.style.width = width;
    });
  }

  /** @param {Live.Phased} newHead */
  function take(newHead) { head = newHead; heardAt = performance.now(); }
  function clear() { head = null; rows = []; box.replaceChildren(); }
  return { build, take, tick, clear };
}
