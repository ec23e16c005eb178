// The panel of many requests: passes what is pulled to the instruments of the arms.

import { add, badge, find, onTheme, redrawn, setText } from '../../components/js/dom.js';
import { bare, makeRunPanel } from '../../live/js/run_panel.js';
import { makeChosen, makeTable } from './chosen.js';
import { appendBatch, axisEnd, batchCursor, emptyBatch, lastMoment } from './columns.js';
import { makeLanes } from './lanes.js';
import { tokensOf } from './requests.js';

const SLOW_NOTE = "drawn slowly while this machine's own cores are measured";
const EMPTY = 'Press Run: arm A serves all requests, then arm B serves the same ones, in pairs until it is decided which serves more. When each request waits, is processed and ends, which slots stand idle and who holds which page of the KV cache appear here, with proof that each choice took effect.';

const lanes = makeLanes(find('.td-lanes'), find('.td-tip'), choose);
const chosenBox = makeChosen(find('.td-chosen'), choose);
const requestTable = makeTable(find('.td-requests'), find('.td-request-rows'), choose);

// One compile per bucket: for each length of the static cache a line over the seconds of the run, with its batches and
// what was compiled for it meanwhile, and the same in words.
const bucketBox = find('.td-buckets');
const buckets = redrawn(bucketBox, (/** @type {Pick<Batch.BatchArmHead, 'name' | 'buckets'>[]} */ arms) => {
  if (!arms.length) return;
  add(add(bucketBox, 'h3', '', 'One compile per bucket'), 'span', 'td-part-hint', 'by slots of the static cache, over the seconds of the run; striped: compiling');
  const last = Math.max(...arms.flatMap(arm => arm.buckets.flatMap(bucket => bucket.batches.map(([, end]) => end))));
  for (const arm of arms) for (const bucket of arm.buckets) {
    const row = add(bucketBox, 'div', 'td-bucket arm-' + arm.name.toLowerCase());
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

/** @type {Batch.Folded[]} */
let batches = [];
/** @type {Batch.Requested | null} */
let requests = null;
let chosen = 0, dirty = false, lastPaint = 0, paintMs = 0, restMs = 80;

const panel = makeRunPanel({
  page: 'batching', run: '#batch-run', code: '#batch-code-', links: settings.links, bar: settings.links, empty: EMPTY,
  question: () => ({ cur: batches.length ? batches.map(batchCursor) : [[0, 0, 0, 0], [0, 0, 0, 0]] }),
  begin(/** @type {Batch.BatchHead} */ head) {
    batches = head.arms.map(emptyBatch);
    requests = head.asked;
    lanes.build(head);
    chosenBox.build(head, requests.arrival_s.length);
  },
  show(/** @type {Batch.BatchHead} */ head, reply, broken) {
    setText(find('.td-traffic'), head.traffic);
    setText(find('.td-why'), head.why);
    buckets.take(head.arms.filter(arm => arm.buckets.length).map(({ name, buckets }) => ({ name, buckets })));
    if (broken) bare(!batches.some(batch => batch.steps.end.length));
    dirty = true;
  },
  grow(/** @type {Batch.BatchDelta} */ reply) {
    let grew = false;
    reply.lanes.forEach((part, i) => { grew = appendBatch(batches[i], part, panel.head.arms[i].pages) || grew; });
    dirty = dirty || grew;
    const [steps, moves, ends] = settings.most, full = part => part.n - part.first >= steps || part.mn - part.mfirst >= moves || part.en - part.efirst >= ends;
    return grew && reply.lanes.some(full) ? 'more' : 'wait';
  },
  end: paint,
  clear() {
    batches = []; requests = null; chosen = 0;
    setText(find('.td-why'), '');
    for (const part of [buckets, lanes, chosenBox, requestTable]) part.clear();
  },
  written: () => batches.map(batch => ({ t: { length: [...batch.rows.values()].reduce((sum, row) => sum + tokensOf(row), 0) } })),
  pace(quiet) {
    panel.puller.every(quiet ? 400 : 80);
    restMs = quiet ? 1000 : 80;
    setText(find('.td-pace'), quiet ? SLOW_NOTE : '');
  },
  tick() {
    if (panel.head && dirty && !document.hidden && performance.now() - lastPaint > Math.max(restMs, 4 * paintMs)) paint();
  },
});

// What an arm's instruments need. Both arms have the same seconds on their axis.
function views() {
  const last = Math.max(...batches.map(lastMoment), requests.arrival_s[0]), end = axisEnd(last, panel.over);
  return batches.map((batch, i) => ({
    batch, asked: requests, now: lastMoment(batch), end, chosen, arm: i, slots: panel.head.slots, waits: panel.head.waits,
    pages: panel.head.arms[i].pages, cacheBytes: panel.head.arms[i].cache_bytes, paged: panel.head.arms[i].kind === 'continuous',
  }));
}

function paint() {
  const began = performance.now(), all = views();
  dirty = false;
  lanes.paint(all);
  chosenBox.show(all, panel.head, chosen);
  requestTable.take(all, panel.head, panel.over);
  lastPaint = performance.now();
  paintMs = lastPaint - began;
}

function choose(request) {
  chosen = request;
  if (panel.head) paint();
}

onTheme(() => { dirty = true; });
new ResizeObserver(() => { if (panel.head) paint(); }).observe(element);
element.classList.add('td-batch');
element.batch = { get batches() { return batches; }, get head() { return panel.head; }, get paintMs() { return paintMs; }, choose };
panel.start();
