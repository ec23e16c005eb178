// One compile per bucket: for each length of the static cache a line over the seconds of the run, with its batches and
// what was compiled for it meanwhile, and the same in words.

import { el } from '../../live/js/dom.js';

/** @param {HTMLElement} box */
export function makeBuckets(box) {
  let shown = '';

  /** @param {Pick<Batch.BatchArmHead, 'name' | 'buckets'>[]} arms */
  function take(arms) {
    const known = arms.filter(arm => arm.buckets.length), now = JSON.stringify(known.map(arm => [arm.name, arm.buckets]));
    if (now === shown) return;
    shown = now;
    box.hidden = !known.length;
    box.replaceChildren();
    if (!known.length) return;
    const title = el('h3', '', 'One compile per bucket');
    title.append(el('span', 'td-part-hint', 'by slots of the static cache, over the seconds of the run; striped: compiling'));
    box.append(title);
    const last = Math.max(...known.flatMap(arm => arm.buckets.flatMap(one => one.batches.map(([, end]) => end))));
    for (const arm of known) for (const bucket of arm.buckets) {
      const row = el('div', 'td-bucket arm-' + arm.name.toLowerCase()), track = el('div', 'td-bucket-track');
      track.setAttribute('aria-hidden', 'true');
      for (const [kind, spans] of /** @type {[string, [number, number][]][]} */ ([['batch', bucket.batches], ['compile', bucket.compiled]])) {
        for (const [begin, end] of spans) {
          const piece = el('i', 'td-bucket-' + kind);
          piece.style.left = 100 * begin / last + '%';
          piece.style.width = 100 * (end - begin) / last + '%';
          track.append(piece);
        }
      }
      row.append(el('span', 'td-arm', arm.name), el('b', '', bucket.slots.toLocaleString('en') + ' slots'), track, el('small', '', bucket.said));
      box.append(row);
    }
  }

  function clear() { take([]); }
  return { take, clear };
}
