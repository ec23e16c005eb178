// The verdict of a run: a sentence, and a card with one number inside its sentence, the pairs that it comes from, four figures,
// a recommendation and what to do next. The card stands there from the start of a run, is pale until it is decided, and keeps
// its height.

import { add, button, el, find, setText } from '../../components/js/dom.js';
import { titled } from './terms.js';

/**
 * @param {HTMLElement} box
 * @param {((next: Live.Next) => void) | null} act what a press of the next step does; null: there is none, as in a file
 */
export function makeCard(box, act) {
  const said = add(box, 'div', 'td-said'), figures = add(box, 'div', 'td-four'), advice = add(box, 'div', 'td-advice');
  const lead = add(said, 'p', 'td-lead'), row = add(said, 'div', 'td-ratio'), tail = add(said, 'p', 'td-tail');
  const figure = add(row, 'p', 'td-number'), scale = add(row, 'div', 'td-scale');
  const badge = add(advice, 'p', 'td-badge-said'), reason = add(advice, 'p', 'td-reason'), cost = add(advice, 'p', 'td-reason td-cost');
  /** @type {Live.Card | null} */
  let shown = null;
  const next = button('td-next', '', '', () => { if (act && shown?.next) act(shown.next); });
  advice.append(next);

  /**
   * As long as there is nothing to compare, the card says what is being done, beside the figures that are known so far.
   * @param {Live.Card | null} card @param {string} underway @param {Pick<Live.ArmHead, 'tiles'>[]} arms
   */
  function take(card, underway = '', arms = []) {
    shown = card;
    box.hidden = !card && !underway;
    if (!card) {
      box.className = 'td-answer td-waiting';
      setText(lead, underway);
      figures.replaceChildren(...FIRST.map(key => tileSoFar(key, arms)).filter(tile => tile !== null).map(figureOf));
      return;
    }
    box.className = 'td-answer ' + card.tone + (card.decided ? ' td-decided' : '');
    setText(lead, card.lead);
    setText(figure, card.figure);
    setText(tail, card.tail);
    drawScale(card);
    figures.replaceChildren(...card.tiles.map(figureOf));
    setText(badge, card.recommendation);
    setText(reason, card.reason);
    setText(cost, card.cost);
    cost.hidden = !card.cost;
    next.hidden = !act || !card.next;
    if (card.next) setText(next, card.next.label);
  }

  /** @param {Live.CardTile} tile */
  function figureOf(tile) {
    const cell = el('div', 'td-one');
    cell.append(titled('p', 'td-one-title', tile.title));
    const line = add(cell, 'p', 'td-values');
    add(line, 'b', tile.b ? 'arm-a' : '', tile.a);
    if (tile.b) line.append(' \u2192 ', el('b', 'arm-b', tile.b));
    if (tile.unit) add(line, 'small', '', ' ' + tile.unit);
    add(cell, 'p', 'td-one-note', tile.note);
    return cell;
  }

  /** @param {Live.Card} card */
  function drawScale(card) {
    scale.replaceChildren(el('p', 'td-ends', card.ends || (card.pairs.length === 1 ? 'one pair, no interval yet' : '')));
    if (card.low === null || card.high === null) return;
    const shown = scaled(card), { ratio, low, high } = shown;
    const axis = axisOf(shown), line = el('div', 'td-axis-line');
    /** @param {number} ratio */
    const at = ratio => 100 * (Math.log(ratio) - axis.from) / (axis.to - axis.from) + '%';
    const band = el('i', 'td-band');
    band.classList.toggle('td-cut-low', Math.log(low) < axis.from);
    band.classList.toggle('td-cut-high', Math.log(high) > axis.to);
    band.style.left = at(Math.max(low, Math.exp(axis.from)));
    band.style.right = 'calc(100% - ' + at(Math.min(high, Math.exp(axis.to))) + ')';
    line.append(band, ...shown.pairs.map(ratio => Object.assign(el('i', 'td-pair'), { style: 'left:' + at(ratio) })));
    if (axis.from < 0 && axis.to > 0) line.append(Object.assign(el('i', 'td-even'), { style: 'left:' + at(1), title: 'as fast' }));
    line.append(Object.assign(el('i', 'td-middle'), { style: 'left:' + at(ratio) }));
    const ticks = el('div', 'td-ticks');
    for (const end of [Math.exp(axis.from), Math.exp(axis.to)]) ticks.append(el('span', '', ratioText(end)));
    scale.append(line, ticks);
  }

  return { take, clear: () => take(null) };
}

const FIRST = ['latency', 'rate', 'ttft', 'memory'];

// A figure of both arms as far as it is known, '–' where it is not yet; null where no arm has it.
/** @param {string} key @param {Pick<Live.ArmHead, 'tiles'>[]} arms @returns {Live.CardTile | null} */
export function tileSoFar(key, arms) {
  const tiles = arms.map(arm => arm.tiles.find(tile => tile.key === key && tile.value !== 'n/a')), known = tiles.find(tile => tile);
  if (!known || arms.length !== 2) return null;
  const shared = tiles.every(tile => !tile || tile.unit === known.unit);
  const [a, b] = tiles.map(tile => !tile ? '\u2013' : shared ? tile.value : tile.value + ' ' + tile.unit);
  return { title: known.label, a, b, unit: shared ? known.unit : '', note: '' };
}

// What stands on the scale: time of A / time of B, or the inverse where the sentence says that B takes longer.
/** @param {Pick<Live.Card, 'tail' | 'pairs' | 'ratio' | 'low' | 'high'>} card */
export function scaled({ tail, pairs, ratio, low, high }) {
  if (!tail || high >= 1) return { pairs, ratio, low, high };
  return { pairs: pairs.map(ratio => 1 / ratio), ratio: 1 / ratio, low: 1 / high, high: 1 / low };
}

// The script stands below the results, in a panel whose content exists only while it is open; a run begins as a press of
// Run does.
/** @param {Live.Next} next @param {string} run the page's button @param {string} codes ids of its scripts begin with it */
export async function nextStep(next, run, codes) {
  /** @param {string} selector @returns {HTMLElement | null} */
  const part = selector => document.querySelector(selector);
  if (next.action === 'run') { part(run)?.click(); return; }
  const code = codes + next.arm.toLowerCase();
  if (!part(code)) part(codes.slice(0, -1) + ' button')?.click();
  for (let tries = 0; tries < 60 && !part(code); tries++) await new Promise(done => setTimeout(done, 50));
  part(code)?.scrollIntoView({ block: 'start' });
  part(code + ' button')?.focus({ preventScroll: true });
}

// The ends of the scale, as logarithms: what the pairs span, the interval as far as it is not many times wider, and 1 where
// it holds that.
/** @param {Pick<Live.Card, 'pairs' | 'ratio' | 'low' | 'high'>} card */
export function axisOf(card) {
  const logs = card.pairs.map(Math.log), middle = Math.log(card.ratio);
  const spread = Math.max(0.01, Math.max(...logs) - middle, middle - Math.min(...logs));
  const reach = Math.min(4 * spread, Math.max(Math.log(card.high) - middle, middle - Math.log(card.low)));
  const half = 1.15 * Math.max(spread, reach, card.low < 1 && card.high > 1 ? Math.abs(middle) : 0);
  return { from: middle - half, to: middle + half };
}

/** @param {number} ratio */
export function ratioText(ratio) {
  return (ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2)) + '\u00d7';
}

// The verdict; while a run is under way what is being done.
/** @param {Live.Judged} head @param {Live.Delta['status']} status */
export function wording(head, status) {
  if (head.verdict.sentence) return head.verdict.sentence;
  if (status === 'queued') return 'Waiting for the runs before this one.';
  if (status === 'done') return 'The run is complete.';
  if (status === 'cancelled') return head.arms.length > 1 ? 'Stopped before both arms were complete: no verdict.' : 'Stopped before the arm was complete.';
  if (status !== 'running') return '';
  const working = head.arms.find(arm => arm.state === 'working');
  if (!working) return 'Starting.';
  const waiting = head.arms.filter(arm => arm.state === 'waiting').map(arm => arm.name);
  const phase = working.phases.at(-1);
  const does = !phase ? ' starts' : phase.name === 'run' ? ' runs' : ': ' + phase.title;
  return 'Arm ' + working.name + does + (waiting.length ? '; then arm ' + waiting.join(' and ') + '.' : '.');
}

// The sentence on the whole run, and below it what it is based on, and in what the arms differ although nobody asked for it.
export function makeVerdict() {
  const sentence = find('.td-sentence'), basis = find('.td-basis'), digest = find('.td-digest'), unasked = find('.td-unasked');
  const gate = element.querySelector('.td-gate'), pays = element.querySelector('.td-pays');  // of one prompt only
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
    gate.replaceChildren(from ? Object.assign(el('a', '', said), { href: '?' + new URLSearchParams({ run: from }) }) : said);
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
