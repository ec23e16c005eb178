// What the canvases share: size in device pixels, colours of the theme, the hatch of idle slots and padding, the time
// axis. All canvases of an arm have the same margins, so that a moment is at the same x in each.

import { css } from '../../live/js/dom.js';
import { ticks } from './scales.js';

export const MARGIN_LEFT = 36, MARGIN_RIGHT = 6;

// A canvas of that height in CSS pixels, ready to draw; null while it is not shown.
/** @param {HTMLCanvasElement} canvas @param {number} height @returns {Batch.Field | null} */
export function prepare(canvas, height) {
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
export function palette(arm) {
  return {
    arm: css(arm % 2 ? '--arm-b' : '--arm-a'), ink: css('--body-text-color'), subdued: css('--body-text-color-subdued'),
    line: css('--border-color-primary'), band: css('--background-fill-secondary'),
  };
}

const hatches = new Map();

// Diagonal lines in a colour: slots and positions that are held and do nothing.
/** @param {CanvasRenderingContext2D} pen @param {string} colour */
export function hatch(pen, colour) {
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
export function timeAxis(field, colours, end, bottom, labels) {
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
export function sideLabel(field, colours, text, y, baseline) {
  field.pen.fillStyle = colours.subdued;
  field.pen.textAlign = 'right';
  field.pen.textBaseline = baseline || 'middle';
  field.pen.fillText(text, MARGIN_LEFT - 8, y);
}

/** @param {Batch.Field} field @param {number} end @param {number} x */
export function timeAtX(field, end, x) {
  return (x - MARGIN_LEFT) / field.inner * end;
}
