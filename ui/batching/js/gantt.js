// The Gantt chart of an arm: a row for each request, in the order of their arrival.

import { pieces } from './requests.js';
import { ticks } from './scales.js';
import { MARGIN_LEFT, hatch, palette, prepare, sideLabel, timeAxis } from './canvas.js';

export const GANTT_HEIGHT = 300, MOST_ROW = 15, LEAST_ROW = 1, AXIS_HEIGHT = 17;

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
  const every = Math.max(1, Math.ceil(14 / high)), step = every === 1 ? 1 : ticks(requests, requests / every)[1] || requests;
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
