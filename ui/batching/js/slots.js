// Slots over time: how many do useful work in each step, and how many are held and idle.

import { count, seconds } from '../../live/js/dom.js';
import { lastMoment } from './columns.js';
import { slotColumns, stepAt } from './scales.js';
import { MARGIN_LEFT, hatch, palette, prepare, sideLabel, timeAxis } from './canvas.js';

const SLOTS_HEIGHT = 62;

/** @param {HTMLCanvasElement} canvas @param {Batch.View} view */
export function drawSlots(canvas, { batch, slots, end, arm }) {
  const field = prepare(canvas, SLOTS_HEIGHT);
  if (!field) return null;
  const { pen, inner } = field, colours = palette(arm), bottom = SLOTS_HEIGHT - 2, top = 6, width = Math.round(inner);
  timeAxis(field, colours, end, bottom, false);
  const y = value => bottom - value / slots * (bottom - top), found = slotColumns(batch.steps, width, end), idle = hatch(pen, colours.subdued);
  for (let x = 0; x < width; x++) {
    if (found.work[x] === null) continue;
    pen.fillStyle = colours.arm;
    pen.fillRect(MARGIN_LEFT + x, y(found.work[x]), 1, bottom - y(found.work[x]));
    if (!found.idle[x]) continue;
    pen.fillStyle = idle;
    pen.fillRect(MARGIN_LEFT + x, y(found.work[x] + found.idle[x]), 1, y(found.work[x]) - y(found.work[x] + found.idle[x]));
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
