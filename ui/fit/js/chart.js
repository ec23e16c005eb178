// Bars of memory, stacked, against lines for the memory of GPUs, as elements: they follow the theme and the width. And where
// sliders with logarithmic steps stop.

import { add } from '../../components/js/dom.js';

const REACH = 2.5;  // the axis ends at most at this multiple of the longest bar
const BEYOND = 3;  // and of the chosen device's memory: longer bars are cut
const LABEL_PX = 74;
const total = (row) => row.parts.reduce((sum, bytes) => sum + bytes, 0);

// Bytes at the right end: all bars that are not cut, and the chosen device's memory unless they would shrink to nothing
// beside it.
/** @param {Pick<Fit.FitView, 'cards'>} view @param {Pick<Fit.RowView, 'parts'>[]} rows */
export function axisEnd(view, rows) {
  const longest = Math.max(1, ...rows.map(total));
  const chosen = view.cards.find((line) => line.chosen).memory_bytes;
  return Math.min(Math.max(longest * 1.12, Math.min(chosen * 1.12, longest * REACH)), chosen * BEYOND);
}

// Lines of GPUs on the axis. A label is left out where it would lie over another one; the chosen device always has one.
/** @param {HTMLElement} axis @param {HTMLElement} bars @param {Fit.FitView} view @param {number} end */
function drawLines(axis, bars, view, end) {
  const width = bars.clientWidth || 600;
  const inside = view.cards.filter((line) => line.memory_bytes <= end);
  const taken = [];
  const free = (x) => taken.every((other) => Math.abs(other - x) >= LABEL_PX);
  const labels = new Set();
  for (const line of [...inside].sort((a, b) => Number(b.chosen) - Number(a.chosen))) {
    const x = line.memory_bytes / end * width;
    if (line.chosen || free(x)) { taken.push(x); labels.add(line); }
  }
  for (const line of inside) {
    const at = 100 * line.memory_bytes / end + '%';
    const words = line.names.join(', ') + ': ' + line.size + (line.chosen ? ', chosen' : '');
    const mark = add(bars, 'i', 'td-line-at' + (line.chosen ? ' chosen' : ''));
    mark.style.left = at;
    mark.title = words;
    if (!labels.has(line)) continue;
    const label = add(axis, 'span', 'td-card-name' + (line.chosen ? ' chosen' : ''));
    add(label, 'b', '', line.names[0] + (line.names.length > 1 ? ' +' + (line.names.length - 1) : ''));
    add(label, 'small', '', line.size);
    label.title = words;
    const x = line.memory_bytes / end * width;
    label.style.left = Math.min(Math.max(x, LABEL_PX / 2), width - LABEL_PX / 2) + 'px';
  }
  const chosen = view.cards.find((line) => line.chosen);
  if (chosen.memory_bytes > end) {
    const label = add(axis, 'span', 'td-card-name chosen td-beyond');
    add(label, 'b', '', chosen.names[0]);
    add(label, 'small', '', chosen.size + ' \u25b8');
  }
}

/** @param {Fit.FitView} view @param {Fit.RowView[]} rows */
export function drawChart(view, rows) {
  const chart = element.querySelector('.td-fit-chart');
  const [legend, axis, bars] = ['.td-legend', '.td-axis', '.td-bars'].map((name) => chart.querySelector(name));
  for (const part of [legend, axis, bars]) part.replaceChildren();
  view.parts.forEach((name, at) => { add(legend, 'i', 'td-part part-' + partKey(view, at)); add(legend, 'span', '', name); });
  add(legend, 'i', 'td-key-line');
  add(legend, 'span', '', 'memory of a GPU');
  const end = axisEnd(view, rows);
  for (const row of rows) {
    const line = add(bars, 'div', 'td-bar ' + row.margin.replaceAll(' ', '-'));
    add(line, 'span', 'td-bar-name', row.title);
    const stack = add(line, 'div', 'td-stack');
    let left = end / 1.12;
    const cut = total(row) > left * 1.001;
    row.parts.forEach((bytes, at) => {
      const piece = add(stack, 'i', 'td-part part-' + partKey(view, at));
      piece.style.width = 100 * Math.min(bytes, left) / end + '%';
      piece.title = view.parts[at];
      left -= Math.min(bytes, left);
    });
    const sign = row.cells[0].slice(0, 1);
    add(stack, 'span', 'td-bar-end', sign + ' ' + row.peak + (cut ? ' \u25b8' : ''));
  }
  drawLines(axis, add(bars, 'div', 'td-lines'), view, end);
}

// Encoders keep no cache, so that their second part is what is the third of decoders.
function partKey(view, at) { return view.encoder && at > 0 ? at + 1 : at; }

/** 1, 2, 3, 4, 6, 8, 12, ... up to `most`, which is the last. @param {number} most */
export function stopsTo(most) {
  const stops = [];
  for (let low = 1; low < most; low *= 2) stops.push(low, ...(low > 1 && low * 1.5 < most ? [low * 1.5] : []));
  return [...stops.filter((stop) => stop < most), most];
}

/** The place of the stop that is nearest to a value, by their ratio. @param {number[]} stops @param {number} value */
export function nearest(stops, value) {
  const away = (stop) => Math.abs(Math.log(stop / Math.max(1, value)));
  return stops.reduce((best, stop, at) => (away(stop) < away(stops[best]) ? at : best), 0);
}
