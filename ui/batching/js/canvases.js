// The canvases of an arm: slots by step, a Gantt chart of its requests, a map of the KV pages. All have the same margins, so
// that a moment is at the same x in each; sizes are in CSS pixels.

import { count, css, seconds } from '../../components/js/dom.js';
import { lastMoment, mapLines, pageMap, slotColumns, stepAt, ticks } from './columns.js';
import { pieces } from './requests.js';

const MARGIN_LEFT = 36, MARGIN_RIGHT = 6;

// A canvas of that height in CSS pixels, ready to draw; null while it is not shown.
/** @param {HTMLCanvasElement} canvas @param {number} height @returns {Batch.Field | null} */
function prepare(canvas, height) {
  const width = canvas.clientWidth, ratio = window.devicePixelRatio || 1;
  if (!width) return null;
  if (canvas.style.height !== height + 'px') canvas.style.height = height + 'px';
  const wide = Math.round(width * ratio), high = Math.round(height * ratio);
  if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
  const pen = canvas.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '11px ' + (css('--font') || 'sans-serif');
  return { pen, width, height, inner: Math.max(1, width - MARGIN_LEFT - MARGIN_RIGHT) };
}

/** @param {number} arm @returns {Batch.Colours} */
function palette(arm) {
  return {
    arm: css(arm % 2 ? '--arm-b' : '--arm-a'), ink: css('--body-text-color'), subdued: css('--body-text-color-subdued'),
    line: css('--border-color-primary'), band: css('--background-fill-secondary'),
  };
}

const hatches = new Map();

// Diagonal lines in a colour: slots and positions that are held and do nothing.
/** @param {CanvasRenderingContext2D} pen @param {string} colour */
function hatch(pen, colour) {
  if (!hatches.has(colour)) {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const brush = tile.getContext('2d');
    brush.strokeStyle = colour;
    brush.lineWidth = 1.1;
    for (const from of [-6, 0, 6]) { brush.beginPath(); brush.moveTo(from - 1, 7); brush.lineTo(from + 7, -1); brush.stroke(); }
    hatches.set(colour, tile);
  }
  return pen.createPattern(hatches.get(colour), 'repeat');
}

// Vertical lines at round seconds, with their numbers below if there is room for them.
/** @param {Batch.Field} field @param {Batch.Colours} colours @param {number} end @param {number} bottom @param {boolean} labels */
function timeAxis(field, colours, end, bottom, labels) {
  const { pen, inner } = field;
  pen.strokeStyle = colours.line;
  pen.fillStyle = colours.subdued;
  pen.lineWidth = 1;
  pen.textBaseline = 'top';
  const marks = ticks(end, inner / 70);
  marks.forEach((mark, i) => {
    const x = Math.round(MARGIN_LEFT + mark / end * inner) + 0.5;
    pen.beginPath();
    pen.moveTo(x, 0);
    pen.lineTo(x, bottom);
    pen.stroke();
    if (!labels) return;
    pen.textAlign = i === marks.length - 1 && mark / end > 0.95 ? 'right' : i ? 'center' : 'left';
    pen.fillText(mark + (i === marks.length - 1 ? ' s' : ''), x, bottom + 3);
  });
}

/**
 * @param {Batch.Field} field @param {Batch.Colours} colours @param {string} text @param {number} y @param {CanvasTextBaseline} [baseline]
 */
function sideLabel(field, colours, text, y, baseline) {
  field.pen.fillStyle = colours.subdued;
  field.pen.textAlign = 'right';
  field.pen.textBaseline = baseline || 'middle';
  field.pen.fillText(text, MARGIN_LEFT - 8, y);
}

/** @param {Batch.Field} field @param {number} end @param {number} x */
export function timeAtX(field, end, x) {
  return (x - MARGIN_LEFT) / field.inner * end;
}

// --- slots over time: how many do useful work in each step, and how many are held and idle ---

const SLOTS_HEIGHT = 62;

/** @param {HTMLCanvasElement} canvas @param {Batch.View} view */
export function drawSlots(canvas, { batch, slots, end, arm }) {
  const field = prepare(canvas, SLOTS_HEIGHT);
  if (!field) return null;
  const { pen, inner } = field, colours = palette(arm), bottom = SLOTS_HEIGHT - 2, top = 6, width = Math.round(inner);
  timeAxis(field, colours, end, bottom, false);
  const y = value => bottom - value / slots * (bottom - top), columns = slotColumns(batch.steps, width, end), idle = hatch(pen, colours.subdued);
  for (let x = 0; x < width; x++) {
    if (columns.work[x] === null) continue;
    pen.fillStyle = colours.arm;
    pen.fillRect(MARGIN_LEFT + x, y(columns.work[x]), 1, bottom - y(columns.work[x]));
    if (!columns.idle[x]) continue;
    pen.fillStyle = idle;
    pen.fillRect(MARGIN_LEFT + x, y(columns.work[x] + columns.idle[x]), 1, y(columns.work[x]) - y(columns.work[x] + columns.idle[x]));
  }
  pen.strokeStyle = colours.subdued;
  pen.setLineDash([3, 3]);
  pen.beginPath();
  pen.moveTo(MARGIN_LEFT, Math.round(y(slots)) + 0.5);
  pen.lineTo(MARGIN_LEFT + inner, Math.round(y(slots)) + 0.5);
  pen.stroke();
  pen.setLineDash([]);
  sideLabel(field, colours, String(slots), y(slots));
  sideLabel(field, colours, '0', bottom, 'bottom');
  return field;
}

/** @param {Batch.Folded} batch @param {number} slots @param {number} at */
export function describeSlots(batch, slots, at) {
  const step = stepAt(batch.steps, at), { steps } = batch;
  if (step < 0 || at > lastMoment(batch)) return '';
  const parts = [['prefill', steps.prefill], ['decode', steps.decode], ['idle', steps.idle]].filter(([, column]) => column[step]).map(([name, column]) => column[step] + ' ' + name);
  const waiting = steps.waiting[step] ? '; ' + count(steps.waiting[step]) + ' waiting' : '';
  return 'Step ' + count(step + 1) + ' at ' + seconds(steps.begin[step]) + ': ' + (parts.join(', ') || 'no request') + ' of ' + slots + ' slots' + waiting;
}

// --- Gantt chart: a row for each request, in the order of their arrival ---

const GANTT_HEIGHT = 300, MOST_ROW = 15, LEAST_ROW = 1, AXIS_HEIGHT = 17;

/** @param {number} requests */
export function rowHeight(requests) {
  return Math.max(LEAST_ROW, Math.min(MOST_ROW, GANTT_HEIGHT / requests));
}

/** @param {number} requests */
export function ganttHeight(requests) {
  return Math.ceil(rowHeight(requests) * requests) + AXIS_HEIGHT;
}

// view: { batch, asked, now, end, chosen, hovered, arm }. Returns the field that was drawn on, null while hidden.
/** @param {HTMLCanvasElement} canvas @param {Batch.View} view */
export function drawGantt(canvas, view) {
  const { batch, asked, now, end, chosen, hovered } = view, requests = asked.arrival_s.length;
  const field = prepare(canvas, ganttHeight(requests));
  if (!field) return null;
  const { pen, width, inner } = field, colours = palette(view.arm), high = rowHeight(requests), bottom = high * requests;
  const at = second => MARGIN_LEFT + Math.min(1, second / end) * inner;
  for (const request of new Set([chosen, hovered])) {
    if (request < 0 || request >= requests) continue;
    pen.fillStyle = colours.band;
    pen.fillRect(0, request * high - (high < 4 ? 2 : 0), width, Math.max(high, 4));
  }
  timeAxis(field, colours, end, bottom, true);
  const idle = hatch(pen, colours.subdued), gap = high >= 5 ? 1 : 0, tall = Math.max(high - 2 * gap, 0.8);
  for (let request = 0; request < requests; request++) {
    const row = batch.rows.get(request), top = request * high + gap;
    for (const piece of pieces(row, asked.arrival_s[request], now)) drawPiece(piece, top);
    if (row && row.end !== null && row.reason === 'cancelled' && high >= 5) drawCross(at(row.end), top + tall / 2);
  }
  const apart = Math.max(1, Math.ceil(14 / high)), step = apart === 1 ? 1 : ticks(requests, requests / apart)[1] || requests;
  for (let number = Math.max(1, step === 1 ? 1 : step); number <= requests; number += step) sideLabel(field, colours, String(number), (number - 0.5) * high);
  if (step * high >= 24) sideLabel(field, colours, '1', high / 2 + 3);
  if (chosen >= 0 && chosen < requests) {
    pen.fillStyle = colours.ink;
    pen.beginPath();
    pen.moveTo(MARGIN_LEFT - 4, (chosen + 0.5) * high - 4);
    pen.lineTo(MARGIN_LEFT + 1, (chosen + 0.5) * high);
    pen.lineTo(MARGIN_LEFT - 4, (chosen + 0.5) * high + 4);
    pen.fill();
  }
  return { ...field, high, bottom };

  function drawPiece(piece, top) {
    const from = at(piece.from), wide = Math.max(at(piece.to) - from, piece.kind === 'prefill' ? 1.5 : 0.5);
    pen.globalAlpha = 1;
    if (piece.kind === 'queued') {
      pen.globalAlpha = 0.5;
      pen.fillStyle = colours.subdued;
      pen.fillRect(from, top + tall / 2 - Math.min(0.75, tall / 4), wide, Math.min(1.5, tall / 2));
    } else if (piece.kind === 'idle' || piece.kind === 'padding') {
      pen.fillStyle = idle;
      pen.fillRect(from, top, wide, tall);
      if (high >= 6 && wide > 3) { pen.strokeStyle = colours.subdued; pen.lineWidth = 0.6; pen.strokeRect(from + 0.3, top + 0.3, wide - 0.6, tall - 0.6); }
    } else {
      pen.fillStyle = piece.kind === 'prefill' ? colours.ink : colours.arm;
      pen.fillRect(from, top, wide, tall);
      if (piece.kind === 'prefill' && wide > 4) { pen.fillStyle = colours.band; pen.fillRect(from + wide - 0.7, top, 0.7, tall); }
    }
    pen.globalAlpha = 1;
  }

  function drawCross(x, y) {
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.4;
    pen.beginPath();
    pen.moveTo(x - 3, y - 3);
    pen.lineTo(x + 3, y + 3);
    pen.moveTo(x + 3, y - 3);
    pen.lineTo(x - 3, y + 3);
    pen.stroke();
  }
}

// --- map of KV pages ---
// Time to the right, the bytes of the paged cache from top to bottom. Neighbouring requests have different shades of the
// arm's colour, the chosen one is in ink, free pages are empty.

const MAP_HEIGHT = 110, SHADES = [0.9, 0.45, 0.7, 0.3, 0.58];

/** @param {HTMLCanvasElement} canvas @param {Batch.View} view */
export function drawPages(canvas, { batch, pages, cacheBytes, end, chosen, arm }) {
  const field = prepare(canvas, MAP_HEIGHT + AXIS_HEIGHT);
  if (!field) return null;
  const { pen, inner } = field, colours = palette(arm), lines = mapLines(cacheBytes, pages), width = Math.max(1, Math.round(inner));
  const map = pageMap(batch, cacheBytes, lines, width, end), [red, green, blue] = rgb(colours.arm), ink = rgb(colours.ink);
  pen.fillStyle = colours.band;
  pen.fillRect(MARGIN_LEFT, 0, inner, MAP_HEIGHT);
  const picture = document.createElement('canvas');
  picture.width = width;
  picture.height = lines;
  const brush = picture.getContext('2d'), image = brush.createImageData(width, lines);
  for (let x = 0; x < width; x++) for (let line = 0; line < lines; line++) {
    const request = map[x * lines + line], at = 4 * (line * width + x);
    if (request < 0) continue;
    const isChosen = request === chosen;
    image.data[at] = isChosen ? ink[0] : red;
    image.data[at + 1] = isChosen ? ink[1] : green;
    image.data[at + 2] = isChosen ? ink[2] : blue;
    image.data[at + 3] = isChosen ? 255 : Math.round(255 * SHADES[request % SHADES.length]);
  }
  brush.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, MARGIN_LEFT, 0, inner, MAP_HEIGHT);
  const each = MAP_HEIGHT / lines;
  if (each >= 5) {
    pen.fillStyle = css('--body-background-fill');
    for (let line = 1; line < lines; line++) pen.fillRect(MARGIN_LEFT, Math.round(line * each) - 0.5, inner, 1);
  }
  timeAxis(field, { ...colours, line: 'transparent' }, end, MAP_HEIGHT, true);
  sideLabel(field, colours, '1', 1, 'top');
  const smallest = Math.min(...pages.map(group => group.page_bytes));  // groups of layers share the bytes of the cache
  if (lines > 1) sideLabel(field, colours, count(Math.round(cacheBytes / smallest)), MAP_HEIGHT, 'bottom');
  return { ...field, map, lines, columns: width };
}

/**
 * @param {Batch.Field & { map: Int32Array, lines: number, columns: number }} field @param {Batch.View} view @param {number} x
 * @param {number} y
 */
export function describePages(field, view, x, y) {
  const at = timeAtX(field, view.end, x), step = stepAt(view.batch.steps, at);
  const column = Math.floor((x - MARGIN_LEFT) / field.inner * field.columns), line = Math.floor(y / MAP_HEIGHT * field.lines);
  if (step < 0 || column < 0 || column >= field.columns || line < 0 || line >= field.lines || at > lastMoment(view.batch)) return '';
  const here = field.map.subarray(column * field.lines, (column + 1) * field.lines), owner = here[line];
  const used = here.reduce((sum, request) => sum + Number(request >= 0), 0);
  return 'Step ' + count(step + 1) + ' at ' + seconds(at) + ': ' + Math.round(100 * used / field.lines) + '% held; here '
    + (owner < 0 ? 'free' : 'request ' + (owner + 1));
}

function rgb(colour) {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
