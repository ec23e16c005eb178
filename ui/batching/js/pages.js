// The map of KV pages: time to the right, the bytes of the paged cache from top to bottom. Neighbouring requests have
// different shades of the arm's colour, the chosen one is in ink, free pages are empty.

import { count, css, seconds } from '../../live/js/dom.js';
import { lastMoment } from './columns.js';
import { mapLines, pageMap, stepAt } from './scales.js';
import { MARGIN_LEFT, palette, prepare, sideLabel, timeAtX, timeAxis } from './canvas.js';
import { AXIS_HEIGHT } from './gantt.js';

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
    const mine = request === chosen;
    image.data[at] = mine ? ink[0] : red;
    image.data[at + 1] = mine ? ink[1] : green;
    image.data[at + 2] = mine ? ink[2] : blue;
    image.data[at + 3] = mine ? 255 : Math.round(255 * SHADES[request % SHADES.length]);
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
  if (lines > 1) sideLabel(field, colours, count(totalPages(pages, cacheBytes)), MAP_HEIGHT, 'bottom');
  return { ...field, map, lines, columns: width };
}

// Pages of the cache: groups of layers share its bytes, so pages of the smallest size are counted.
function totalPages(pages, cacheBytes) {
  return Math.round(cacheBytes / Math.min(...pages.map(group => group.page_bytes)));
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
  const held = here.reduce((sum, request) => sum + Number(request >= 0), 0);
  return 'Step ' + count(step + 1) + ' at ' + seconds(at) + ': ' + Math.round(100 * held / field.lines) + '% held; here '
    + (owner < 0 ? 'free' : 'request ' + (owner + 1));
}

function rgb(colour) {
  const pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
}
