// The phases of each arm, with their durations. `tick` advances the running one between two replies.

import { count, el, seconds, setText } from './dom.js';

/** @param {HTMLElement} box */
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
      row.append(el('span', 'td-arm', arm.name), el('b', 'td-label', arm.label), steps, bar);
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
