// The pinned arms: two to five, of any runs, in a tray; side by side their charts over each other and a table: what else
// differs first, then conditions, choices, figures, ledgers and texts.

import { afterPress, button, el, find, focusWithin, setText, tableRow } from '../../components/js/dom.js';
import { showPareto } from '../../components/js/pareto.js';
import { makeCharts } from '../../live/js/charts.js';
import { appendReply, cursorOf, emptySeries } from '../../live/js/columns.js';
import { seen } from './rows.js';
import { inputs } from './search.js';
import { answerTo, change, complain, question, state, when } from './state.js';

/** @param {string} pin */
export function toggle(pin) {
  const on = state.pins.includes(pin);
  if (!on && state.pins.length >= settings.most) {
    complain(new Error(settings.most + ' arms are pinned, which is as many as can stand side by side. Unpin one first.'));
    return;
  }
  change({ pins: on ? state.pins.filter(pinned => pinned !== pin) : [...state.pins, pin] }, false);
}

/** @param {string} pin */
function pinName(pin) {
  const at = pin.indexOf('.');
  return seen.get(pin) || pin.slice(0, Math.min(8, at)) + ' ' + pin.slice(at + 1);
}

const tray = find('.td-tray');
export const showTray = afterPress(tray, () => {
  const { pins } = state, focused = focusWithin(tray)?.dataset.press;
  tray.hidden = !pins.length;
  const enough = pins.length >= settings.fewest;
  const chips = pins.map((pin, at) => {
    const chip = el('span', 'td-pinned arm-' + (at + 1));
    const off = button('td-unpin', '\u00d7', 'Unpin ' + pinName(pin), () => {
      const left = state.pins.filter(pinned => pinned !== pin);
      change({ pins: left, beside: state.beside && left.length >= settings.fewest }, state.beside);
    });
    off.dataset.press = pin;
    chip.append(el('b', 'td-arm', String(at + 1)), el('span', '', pinName(pin)), off);
    return chip;
  });
  const view = button('td-compare', 'Side by side', '', () => change({ beside: true }, true));
  view.disabled = !enough || state.beside;
  view.dataset.press = 'view';
  const none = button('td-unpin-all', 'Unpin all', '', () => change({ pins: [], beside: false }, state.beside));
  none.dataset.press = 'none';
  tray.replaceChildren(...chips, view, none, el('span', 'td-hint', enough ? '' : 'Pin ' + settings.fewest + ' to ' + settings.most + ' arms, of any runs.'));
  if (!focused) return;
  const refocused = [...tray.querySelectorAll('button:enabled')].find(button => button.dataset.press === focused);
  (refocused || tray.querySelector('.td-unpin') || inputs.q).focus();
});

// --- side by side ---

const GROUPS = { conditions: 'Ran under', choices: 'Choices that differ', figures: 'Measured', ledger: 'Proof', text: 'Texts' };
let shownPins = '';

// The list is shown: the next table is another view, which takes the focus.
export function leaveBeside() {
  shownPins = '';
}

/** @param {History.PinnedArm} arm */
function headCell(arm) {
  const cell = el('th', 'arm-' + arm.label), link = el('a', '', arm.title);
  cell.scope = 'col';
  link.href = '?run=' + encodeURIComponent(arm.run);
  cell.append(el('b', 'td-arm', arm.label), link, el('small', '', 'arm ' + arm.arm + ', ' + when(arm.created)), el('small', '', arm.choices));
  return cell;
}

/** @param {History.SideRow} row */
function sideRow(row) {
  const differs = row.group === 'conditions' && row.differs;
  const line = tableRow(differs ? [row.label, el('small', '', '\u2260 differs')] : row.label, row.cells.map(({ text, against, note }) => [
    text, against ? el('small', 'td-against', against) : '', note ? el('small', '', note) : '',
  ]), differs ? 'td-differs' : '');
  row.cells.forEach((_, at) => { line.cells[at + 1].dataset.arm = String(at + 1); });
  return line;
}

/** @param {History.SideBySide} view */
function showTable(view) {
  const table = el('table'), head = el('tr');
  head.append(el('td'), ...view.arms.map(headCell));
  table.append(el('caption', 'td-hidden', 'Pinned arms, figure by figure'), el('thead'));
  table.tHead.append(head);
  for (const [group, title] of Object.entries(GROUPS)) {
    const rows = view.rows.filter(row => row.group === group);
    if (!rows.length) continue;
    const body = el('tbody', 'td-' + group), first = el('tr'), cell = el('th', 'td-group', title);
    cell.colSpan = view.arms.length + 1;
    cell.scope = 'rowgroup';
    first.append(cell);
    body.append(first, ...rows.map(sideRow));
    table.append(body);
  }
  find('.td-side').replaceChildren(table);
}

/** @param {() => boolean} isCurrent */
export async function showBeside(isCurrent) {
  const pins = state.pins.join();
  let view;
  try {
    view = await question({ ask: 'beside', pins });
  } catch (error) {
    if (isCurrent()) { complain(error); find('.td-beside').hidden = true; }
    return;
  }
  if (!isCurrent()) return;
  complain(view.missing.length ? new Error('Not kept here (any more): ' + view.missing.join(', ') + '.') : null);
  find('.td-said').replaceChildren(...view.remarks.map(text => el('li', '', text)));
  for (const arm of view.arms) seen.set(arm.pin, arm.title + ' ' + arm.arm + ': ' + arm.choices);
  showTray();
  showTable(view);
  find('.td-beside').hidden = false;
  find('.td-front').replaceChildren();
  if (view.pareto) showPareto(find('.td-front'), view.pareto);
  if (pins !== shownPins) find('.td-back').focus();
  shownPins = pins;
  try {
    await drawOverlay(view.arms, isCurrent);
  } catch (error) {
    if (isCurrent()) complain(error);
  }
}

find('.td-back').addEventListener('click', () => change({ beside: false }, true));

// --- the live panel's charts, over the columns that its pulls return ---

const charts = makeCharts(settings.charts);
const pulledRuns = new Map();  // by id: { head, series }, of runs that have ended
const MAX_CACHED = 8;

// A whole run; null where there is none.
async function pullRun(run) {
  if (pulledRuns.has(run)) return pulledRuns.get(run);
  let series = [], head = null, version = -1;
  for (;;) {
    const cur = series.length ? series.map(cursorOf) : [];
    const reply = await answerTo(server.pull({ run, version, cur }));
    if (reply.error) return null;
    if (reply.head) { head = reply.head; version = reply.version; if (!series.length) series = head.arms.map(emptySeries); }
    let grew = 0;
    reply.lanes.forEach((part, i) => { grew += appendReply(series[i], part).tokens; });
    if (reply.ended || !grew) {
      const pulled = { head, series };
      if (reply.ended) pulledRuns.set(run, pulled);
      if (pulledRuns.size > MAX_CACHED) pulledRuns.delete(pulledRuns.keys().next().value);
      return pulled;
    }
  }
}

// Arms that are timed alike share the charts; what is left out is said. `wanted()`: whether this is still asked for.
/** @param {History.PinnedArm[]} arms @param {() => boolean} isCurrent */
async function drawOverlay(arms, isCurrent) {
  setText(find('.td-drawn'), '');
  const overlays = await Promise.all(arms.map(async ({ run, arm, label }) => {
    const got = await pullRun(run), at = got && got.head ? got.head.arms.findIndex(({ name }) => name === arm) : -1;
    return at < 0 || !got.series[at].t.length ? { label } : { label, head: got.head, arm: got.head.arms[at], series: got.series[at] };
  }));
  if (!isCurrent()) return;
  const drawn = overlays.filter(curve => curve.head), unit = drawn.length ? drawn[0].head.unit : 'token', alike = drawn.filter(curve => curve.head.unit === unit);
  const left = overlays.filter(curve => !alike.includes(curve)).map(curve => curve.label);
  setText(find('.td-drawn'), left.length ? 'Not drawn: ' + left.join(', ') + ' (no ' + (unit === 'forward' ? 'forward passes' : 'tokens of one prompt') + ' were timed)' : '');
  find('.td-stage').hidden = !alike.length;
  if (!alike.length) return;
  const labels = new Set(alike.map(curve => curve.head.memory_label));
  const head = {
    unit, memory_label: labels.size === 1 ? [...labels][0] : 'memory', max_new_tokens: Math.max(...alike.map(curve => curve.head.max_new_tokens)),
    arms: alike.map(curve => ({ ...curve.arm, name: curve.label, line: Number(curve.label) - 1 })),
  };
  charts.reset(arms.map(({ pin }) => pin).join());
  charts.take(head, alike.map(curve => curve.series));
  charts.end();
}

find('.td-png').addEventListener('click', () => charts.picture('tokendyno-pins'));
