// One compile per bucket: for each length of the static cache a line over the seconds of the run, with its batches and
// what was compiled for it meanwhile, and the same in words.

import { add, badge, redrawn } from '../../components/js/dom.js';

/** @param {HTMLElement} box */
export function makeBuckets(box) {
  const { take, clear } = redrawn(box, (/** @type {Pick<Batch.BatchArmHead, 'name' | 'buckets'>[]} */ arms) => {
    if (!arms.length) return;
    add(add(box, 'h3', '', 'One compile per bucket'), 'span', 'td-part-hint', 'by slots of the static cache, over the seconds of the run; striped: compiling');
    const last = Math.max(...arms.flatMap(arm => arm.buckets.flatMap(bucket => bucket.batches.map(([, end]) => end))));
    for (const arm of arms) for (const bucket of arm.buckets) {
      const row = add(box, 'div', 'td-bucket arm-' + arm.name.toLowerCase());
      row.append(badge(arm.name));
      add(row, 'b', '', bucket.slots.toLocaleString('en') + ' slots');
      const track = add(row, 'div', 'td-bucket-track');
      track.setAttribute('aria-hidden', 'true');
      for (const [kind, spans] of /** @type {[string, [number, number][]][]} */ ([['batch', bucket.batches], ['compile', bucket.compiled]])) {
        for (const [begin, end] of spans) {
          const { style } = add(track, 'i', 'td-bucket-' + kind);
          style.left = 100 * begin / last + '%';
          style.width = 100 * (end - begin) / last + '%';
        }
      }
      add(row, 'small', '', bucket.said);
    }
  });
  return { take: arms => take(arms.filter(arm => arm.buckets.length).map(({ name, buckets }) => ({ name, buckets }))), clear };
}
