// The verdict: one sentence on the whole run, and below it what the sentence is based on, and in what the arms differ
// although nobody asked for it. While a run is under way the sentence says what is being done.

import { el, setText } from './dom.js';

/**
 * @param {HTMLElement} sentence @param {HTMLElement} basis @param {HTMLElement} digest @param {HTMLElement} unasked
 * @param {HTMLElement} [gate] @param {HTMLElement} [pays]
 */
export function makeVerdict(sentence, basis, digest, unasked, gate, pays) {
  /** @param {Live.Judged} head @param {Live.Delta['status']} status */
  function take(head, status) {
    setText(sentence, wording(head, status));
    sentence.classList.toggle('td-underway', !head.verdict.sentence);
    setText(basis, head.verdict.basis);
    setText(unasked, head.verdict.unasked);
    if (pays) setText(pays, head.verdict.pays);
    showGate(head.verdict);
    digest.hidden = !head.digest;
    if (!head.digest) return;
    digest.className = 'td-digest ' + head.digest.status;
    setText(digest, head.digest.line);
  }

  // What the gain costs in quality, with a link to the run that measured it.
  /** @param {Pick<Live.VerdictText, 'gate' | 'gate_run'>} verdict */
  function showGate({ gate: said, gate_run: from }) {
    if (!gate || gate.textContent === (said || '')) return;
    gate.replaceChildren();
    gate.title = said || '';
    if (!said) return;
    if (from) gate.append(Object.assign(el('a', 'td-gate-line', said), { href: '?' + new URLSearchParams({ run: from }) }));
    else gate.append(el('span', 'td-gate-line', said));
  }

  /** @param {Live.Judged} head @param {Live.Delta['status']} status */
  function wording(head, status) {
    if (head.verdict.sentence) return head.verdict.sentence;
    if (status === 'queued') return 'Waiting for the runs before this one.';
    if (status !== 'running') return status === 'done' ? 'The run is complete.' : status === 'cancelled' ? 'Stopped before both arms were complete: no verdict.' : '';
    const working = head.arms.find(arm => arm.state === 'working');
    if (!working) return 'Starting.';
    const others = head.arms.filter(arm => arm.state === 'waiting').map(arm => arm.name);
    const phase = working.phases.at(-1);
    return 'Running arm ' + working.name + (phase ? ': ' + phase.title : '') + (others.length ? '; then arm ' + others.join(' and ') + '.' : '.');
  }

  function clear() {
    setText(sentence, '');
    setText(basis, '');
    setText(unasked, '');
    if (pays) setText(pays, '');
    showGate({ gate: '', gate_run: '' });
    digest.hidden = true;
  }
  return { take, clear };
}
