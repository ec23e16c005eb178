// Context and batch size as sliders with logarithmic steps and exact numbers.

import { nearest, stopsTo } from './chart.js';

const PAUSE_MS = 150, TYPING_MS = 500;
const parts = {};
for (const box of element.querySelectorAll('.td-amount')) {
  const [range, number] = box.querySelectorAll('input');
  parts[box.dataset.name] = { box, range, number, note: box.querySelector('small'), stops: [1], unit: box.dataset.name === 'context' ? 'tokens' : 'sequences' };
}
/** @returns {Fit.Amounts} */
const amounts = () => JSON.parse(props.value);
let waiting = 0, sent = props.value;

const place = (part, value) => {
  part.range.max = part.stops.length - 1;
  part.range.value = nearest(part.stops, value);
  part.range.setAttribute('aria-valuetext', Number(value).toLocaleString('en-US') + ' ' + part.unit);
};
const send = (name, value, pause) => {
  const next = JSON.stringify({ ...amounts(), [name]: value });
  if (next === props.value) return;
  sent = next;
  props.value = next;
  clearTimeout(waiting);
  waiting = setTimeout(() => trigger('input'), pause);
};

for (const [name, part] of Object.entries(parts)) {
  part.range.addEventListener('input', () => {
    const value = part.stops[Number(part.range.value)];
    part.number.value = value;
    place(part, value);
    send(name, value, PAUSE_MS);
  });
  part.number.addEventListener('input', () => {
    const value = part.number.value === '' ? '' : Number(part.number.value);
    if (Number(value) >= 1) place(part, value);
    send(name, value, TYPING_MS);
  });
}
const show = () => {
  const { context, batch } = amounts();
  if (context !== null) { parts.context.number.value = context; place(parts.context, context); }
  parts.batch.number.value = batch;
  place(parts.batch, batch);
};
const mostBatch = Number(parts.batch.box.dataset.most);
parts.batch.stops = stopsTo(mostBatch);
parts.batch.note.textContent = 'up to ' + mostBatch.toLocaleString('en-US') + ' sequences';
show();
watch('value', () => { if (props.value !== sent) { sent = props.value; show(); } });
// An answer: how long a context the model has, and which one is shown.
const fitTo = () => {
  if (!element.isConnected || !window.tokendynoFit) return;
  const { context, most, label, encoder } = window.tokendynoFit;
  const part = parts.context;
  part.stops = stopsTo(most);
  part.box.querySelector('legend').textContent = encoder ? 'Input' : 'Context';
  part.note.textContent = 'of ' + most.toLocaleString('en-US') + ' positions of ' + label;
  const chosen = amounts().context;
  const shown = chosen === null ? context : chosen;
  if (document.activeElement !== part.number) part.number.value = shown;
  place(part, shown);
};
fitTo();
window.addEventListener('tokendyno-fit', fitTo);
