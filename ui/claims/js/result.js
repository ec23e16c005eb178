// The Claims page: a row for each claim, and below the chosen row everything about it.

import { add, button, css, el, focusWithin, onTheme, scrolled, tableBody, tableHead, tableRow } from '../../components/js/dom.js';
import { drawLines } from '../../components/js/lines.js';
import { drawPlot, plotIn } from '../../components/js/plot.js';

const CLAIM_CHART_HEIGHT = 58;

// One figure of a claim: the claimed range as a band, the measured interval as a bar with its middle. The text beside it
// says the same.
/** @param {HTMLElement} parent @param {Claims.FigureView} figure */
function claimChart(parent, figure) {
  if (figure.value === null) return;
  const plot = add(parent, 'div', 'td-claim-chart');
  plot.setAttribute('aria-hidden', 'true');
  const ends = [figure.low ?? figure.value, figure.high ?? figure.value];
  const claimed = [figure.claimed_low, figure.claimed_high];
  const none = figure.unit === 'x' ? 1 : 0;  // no effect
  const known = [...ends, ...claimed.filter((end) => end !== null), none];
  const least = Math.min(...known), most = Math.max(...known), room = (most - least || Math.abs(most) || 1) * 0.08;
  const range = [least - room, most + room];
  const band = (ink) => claimed.some((end) => end !== null) ? [{
    type: 'rect', xref: 'x', yref: 'paper', x0: claimed[0] ?? range[0], x1: claimed[1] ?? range[1], y0: 0, y1: 1,
    fillcolor: ink, opacity: 0.25, line: { width: 0 }, layer: 'below',
  }] : [];
  const zero = (ink) => ({ type: 'line', xref: 'x', yref: 'paper', x0: none, x1: none, y0: 0, y1: 1, line: { color: ink, width: 1, dash: 'dot' } });
  const measured = (ink) => ({
    type: 'bar', orientation: 'h', y: [''], x: [Math.max(ends[1] - ends[0], (range[1] - range[0]) / 250)], base: [ends[0]],
    width: [0.5], marker: { color: ink }, hoverinfo: 'skip',
  });
  const sign = { '%': '%', x: 'x' }[figure.unit] ?? ' ' + figure.unit, subdued = '--body-text-color-subdued';
  drawPlot(plot, () => [measured(css('--body-text-color'))], {
    height: CLAIM_CHART_HEIGHT, margin: { t: 4, b: 22, l: 4, r: 12, autoexpand: false }, hovermode: false,
    shapes: [...band(css(subdued)), zero(css(subdued))],
    xaxis: { range, nticks: sign.length > 1 ? 4 : 6, tickangle: 0, tickformat: ',~r', ticksuffix: sign, automargin: false }, yaxis: { visible: false, automargin: false },
  });
}

const wordClass = (word) => word.replaceAll(' ', '-');

/** Everything about one claim, below its row. @param {HTMLElement} cell @param {Claims.ClaimView} claim */
function drawDetail(cell, claim) {
  const box = add(cell, 'div', 'td-claim-detail');
  add(box, 'p', 'td-claim-said', claim.said);
  add(box, 'p', 'td-claim-source', claim.document + ': ' + claim.place + '.');
  if (claim.differs) add(box, 'p', 'td-claim-source', 'How it was tested: ' + claim.differs);
  if (!claim.machines.length) add(box, 'p', '', claim.sentence);
  for (const machine of claim.machines) {
    const part = add(box, 'section', 'td-claim-machine');
    const head = add(part, 'h2', '', machine.machine);
    add(head, 'span', 'td-word ' + wordClass(machine.word), machine.word);
    if (machine.remark) add(head, 'small', '', machine.remark);
    add(head, 'small', '', machine.date + ', ' + machine.versions);
    for (const figure of machine.figures) {
      const line = add(part, 'div', 'td-claim-figure');
      const text = add(line, 'p');
      add(text, 'b', '', figure.title);
      add(text, 'span', '', figure.measured);
      if (figure.claimed) add(text, 'small', figure.state, 'claimed ' + figure.claimed + ': ' + figure.standing);
      claimChart(line, figure);
    }
    if (machine.device === 'cpu' && claim.about === 'gpu') {
      add(part, 'p', 'td-claim-source', 'Measured on a CPU: it decides nothing about GPUs.');
    }
    for (const doubt of machine.doubts) add(part, 'p', 'td-claim-doubt', 'Not as planned: ' + doubt);
  }
  for (const { title, command, drawn } of claim.curves) {
    const part = add(box, 'figure', 'td-claim-curve');
    drawLines(plotIn(part, title), drawn, drawn.chart);
    add(part, 'p', 'td-claim-source', drawn.source + ': ' + command);
    const numbers = add(part, 'details', 'td-claim-commands');
    add(numbers, 'summary', '', 'Numbers');
    const rows = drawn.places.map((place, at) => tableRow(place, drawn.chart.lines.map(({ texts }) => texts[at])));
    numbers.append(scrolled('', title, [tableHead([drawn.horizontal, ...drawn.chart.lines.map((line) => line.title)]), tableBody(rows)]).box);
  }
  for (const [device, lines] of Object.entries(claim.commands)) {
    const list = add(box, 'details', 'td-claim-commands');
    add(list, 'summary', '', 'Commands on ' + (device === 'cuda' ? 'a GPU' : 'a CPU'));
    add(list, 'pre', '', ['tokendyno claims ' + claim.name + ' --run', ...lines].join('\n'));
  }
}

const COLUMNS = ['Claim', 'Claimed', 'Measured', 'Verdict'];

/**
 * @param {HTMLElement} box @param {Claims.ClaimsDocument} claimsDocument @param {string} shownWord @param {string} chosen
 * @param {(name: string) => void} choose
 */
function drawClaims(box, claimsDocument, shownWord, chosen, choose) {
  box.replaceChildren();
  const table = add(box, 'table');
  add(table, 'caption', 'td-hidden', 'Claims, what was measured, and verdicts');
  table.append(tableHead(COLUMNS));
  let family = '', body = null;
  for (const claim of claimsDocument.claims) {
    if (shownWord && claim.word !== shownWord) continue;
    if (claim.family !== family) {
      family = claim.family;
      body = add(table, 'tbody');
      const title = add(add(body, 'tr', 'td-claim-family'), 'th', '', claim.family_title);
      title.colSpan = COLUMNS.length;
      title.scope = 'rowgroup';
    }
    const opener = button('td-claim-open', claim.title, '', () => choose(claim.name)), open = claim.name === chosen;
    opener.dataset.name = claim.name;
    opener.setAttribute('aria-expanded', String(open));
    const word = [el('span', 'td-word ' + wordClass(claim.word), claim.word), ...(claim.remark ? [el('small', 'td-remark', claim.remark)] : [])];
    const row = tableRow(opener, [claim.claimed || '\u2013', claim.measured || '\u2013', word], 'td-claim-row');
    ['Claimed', 'Measured'].forEach((label, at) => { row.cells[at + 1].dataset.label = label; });
    body.append(row);
    if (open) {
      const cell = add(add(body, 'tr', 'td-claim-more'), 'td');
      cell.colSpan = COLUMNS.length;
      drawDetail(cell, claim);
    }
  }
}

const rows = element.querySelector('.td-claims-rows'), counts = element.querySelector('.td-claims-counts');
let shownWord = '', chosen = null;

function draw() {
  if (!props.value) return;
  /** @type {Claims.ClaimsDocument} */
  const claimsDocument = JSON.parse(props.value);
  const opens = chosen === null;
  if (opens) chosen = new URL(location.href).searchParams.get('name') || '';
  const focused = focusWithin(element)?.dataset ?? {};
  const name = focused.name, word = focused.word;
  counts.replaceChildren();
  /** @type {[string, number][]} */
  const words = [['', claimsDocument.claims.length], ...Object.entries(claimsDocument.counts)];
  for (const [filterWord, count] of words) {
    const filter = button(filterWord && wordClass(filterWord), count + ' ' + (filterWord || 'claims'), '', () => { shownWord = filterWord; draw(); });
    filter.dataset.word = filterWord;
    filter.setAttribute('aria-pressed', String(filterWord === shownWord));
    counts.append(filter);
  }
  drawClaims(rows, claimsDocument, shownWord, chosen, (next) => {
    chosen = next === chosen ? '' : next;
    window.tokendynoAddress?.tell('claims', ['name'], [chosen]);
    draw();
  });
  const again = name !== undefined ? [...rows.querySelectorAll('button')].find((filterWord) => filterWord.dataset.name === name)
    : word !== undefined ? [...counts.querySelectorAll('button')].find((filterWord) => filterWord.dataset.word === word) : null;
  again?.focus();
  if (opens && chosen) rows.querySelector('[data-name="' + CSS.escape(chosen) + '"]')?.scrollIntoView({ block: 'center' });
}
onTheme(draw);
draw();
watch('value', draw);
