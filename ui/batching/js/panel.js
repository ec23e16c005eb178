// The panel of many requests: opens a run by id, passes what is pulled to the instruments, and shows the run's status.

import { onTheme } from '../../components/js/theme.js';
import { find, setText } from '../../live/js/dom.js';
import { LOCAL, WATCHED, bare, clearLine, refuse, showLink, showMessage, showStatus, showUnkept } from '../../live/js/run_line.js';
import { makePuller } from '../../live/js/pull.js';
import { makePhaseBar } from '../../live/js/phase_bar.js';
import { makePhases } from '../../live/js/phases.js';
import { makeVerdict } from '../../live/js/verdict.js';
import { makeCard, nextStep } from '../../live/js/card.js';
import { makeTiles } from '../../live/js/tiles.js';
import { makeDetails } from '../../live/js/details.js';
import { makeBuckets } from './buckets.js';
import { makeLedger } from '../../live/js/ledger.js';
import { showRemarks } from '../../live/js/remarks.js';
import { appendBatch, batchCursor, emptyBatch, lastMoment } from './columns.js';
import { tokensOf } from './requests.js';
import { axisEnd } from './scales.js';
import { makeLanes } from './lanes.js';
import { makeChosen } from './chosen.js';
import { makeTable } from './table.js';

const SLOW_NOTE = "drawn slowly while this machine's own cores are measured";
const EMPTY = 'Press Run: arm A serves all requests, then arm B serves the same ones, in pairs until it is decided which serves more. When each request waits, is processed and ends, which slots stand idle and who holds which page of the KV cache appear here, with proof that each choice took effect.';

const lanes = makeLanes(find('.td-lanes'), find('.td-tip'), choose);
const chosenBox = makeChosen(find('.td-chosen'), choose);
const requestTable = makeTable(find('.td-requests'), find('.td-request-rows'), choose);
const phases = makePhases(find('.td-progress'));
const bar = makePhaseBar(find('.td-run-bar'));
const verdict = makeVerdict(find('.td-sentence'), find('.td-basis'), find('.td-digest'), find('.td-unasked'));
const card = makeCard(find('.td-answer'), settings.acts ? next => nextStep(next, '#batch-run', '#batch-code-') : null);
const tiles = makeTiles(find('.td-tiles'));
const details = makeDetails(find('.td-rows'));
const buckets = makeBuckets(find('.td-buckets'));
const ledger = makeLedger(find('.td-ledger'), () => 'files/' + encodeURIComponent(run) + '.py');

/** @type {Batch.Folded[]} */
let batches = [];
/** @type {Batch.BatchHead | null} */
let head = null;
/** @type {Batch.Asked | null} */
let asked = null;
let run = '', titled = '', version = -1, sent = 0, heard = 0, over = false, chosen = 0, dirty = false, lastPaint = 0, paintMs = 0;
const puller = makePuller(ask, take, text => setText(find('.td-connection'), text));

async function ask() {
  const seq = ++sent, mine = run;
  const cur = batches.length ? batches.map(batchCursor) : [[0, 0, 0, 0], [0, 0, 0, 0]];
  const reply = JSON.parse(await server.pull({ run: mine, version, cur }));
  reply.seq = seq;
  return reply;
}

/** @param {(Batch.BatchDelta & { error?: string, seq: number })} reply */
function take(reply) {
  if (reply.error) { refuse(run, reply.error); return 'over'; }
  if (reply.run !== run || over) return over ? 'over' : 'wait';
  if (reply.head && reply.seq > heard) { heard = reply.seq; takeHead(reply); }
  if (!head) return 'wait';
  showStatus(reply.status, reply.queue);
  showUnkept(reply.trouble);
  puller.atLeast(reply.every_ms);
  let grew = false;
  reply.lanes.forEach((part, i) => { grew = appendBatch(batches[i], part, head.arms[i].pages) || grew; });
  if (grew || reply.head) dirty = true;
  const [steps, moves, ends] = settings.most, full = part => part.n - part.first >= steps || part.mn - part.mfirst >= moves || part.en - part.efirst >= ends;
  if (!reply.ended) return grew && reply.lanes.some(full) ? 'more' : 'wait';
  finish(reply);
  return 'over';
}

function takeHead(reply) {
  const first = !head;
  head = reply.head;
  version = reply.version;
  asked = head.asked || asked;
  if (first) {
    batches = head.arms.map(emptyBatch);
    lanes.build(head);
    chosenBox.build(head, asked.arrival_s.length);
    phases.build(head.arms);
    setText(find('.td-empty-run'), '');
    bare(false);
  }
  setText(find('.td-title'), head.title);
  setText(find('.td-note'), head.note);
  setText(find('.td-traffic'), head.traffic);
  phases.take(head);
  bar.take(head.bar, reply.ended);
  verdict.take(head, reply.status);
  entitle(head.heading || bar.title());
  const waits = ['queued', 'running'].includes(reply.status) && head.arms.length === 2;
  card.take(head.card, waits ? find('.td-sentence').textContent : '');
  find('.td-verdict').classList.toggle('td-carded', Boolean(head.card) || waits);
  setText(find('.td-sure'), head.card ? head.card.confidence : '');
  setText(find('.td-why'), head.why);
  tiles.take(head.arms, head.differences);
  details.take(head.arms);
  buckets.take(head.arms);
  ledger.take(head.arms, head.digest);
  showRemarks(find('.td-remarks'), head.arms);
  const broken = showMessage(reply.status, head.message);
  bare(broken && !batches.some(batch => batch.steps.end.length));
  setPace(reply.ended);
}

// On the machine that is being measured every paint and every pull takes CPU time from the model.
function setPace(ended) {
  const quiet = !ended && head.quiet && LOCAL;
  puller.every(quiet ? 400 : 80);
  restMs = quiet ? 1000 : 80;
  setText(find('.td-pace'), quiet ? SLOW_NOTE : '');
}

let restMs = 80;

// What an arm's instruments need. Both arms have the same seconds on their axis.
function views() {
  const last = Math.max(...batches.map(lastMoment), asked.arrival_s[0]), end = axisEnd(last, over);
  return batches.map((batch, i) => ({
    batch, asked, now: lastMoment(batch), end, chosen, arm: i, slots: head.slots, waits: head.waits,
    pages: head.arms[i].pages, cacheBytes: head.arms[i].cache_bytes, paged: head.arms[i].kind === 'continuous',
  }));
}

function paint() {
  const began = performance.now(), all = views();
  dirty = false;
  lanes.paint(all);
  chosenBox.show(all, head, chosen);
  requestTable.take(all, head, over);
  lastPaint = performance.now();
  paintMs = lastPaint - began;
}

function choose(request) {
  chosen = request;
  if (head) paint();
}

function finish(reply) {
  over = true;
  setPace(true);
  phases.tick(tokenCounts(), true);
  paint();
  element.dataset.over = reply.run;
  trigger('finished', { run: reply.run, status: reply.status });
}

// The phases count tokens.
function tokenCounts() {
  return batches.map(batch => {
    let tokens = 0;
    for (const row of batch.rows.values()) tokens += tokensOf(row);
    return { t: { length: tokens } };
  });
}

function open(id) {
  run = id || '';
  batches = []; head = null; asked = null; version = -1; heard = sent; over = false; chosen = 0;
  clearLine(run, ['traffic', 'pace', 'why', 'sure']);
  window.dispatchEvent(new Event('tokendyno-run'));
  entitle('');
  find('.td-verdict').classList.remove('td-carded');
  bar.clear(); verdict.clear(); card.clear(); tiles.clear(); details.clear(); buckets.clear(); ledger.clear(); phases.clear(); lanes.clear(); chosenBox.clear(); requestTable.clear();
  setText(find('.td-empty-run'), run ? '' : settings.acts ? EMPTY : WATCHED);
  bare(true);
  showLink(run);
  if (!run) { puller.stop(); return; }
  puller.begin();
}

// The title of the browser's tab: what is shown, or how long it still goes.
function entitle(text) {
  if (text === titled) return;
  titled = text;
  window.tokendynoAddress?.title('batching', text);
}

function clock() {
  if (!element.isConnected) return;
  if (head && !over) entitle(head.heading || bar.title());
  if (head && !over && !document.hidden) { bar.tick(); phases.tick(tokenCounts()); }
  if (head && dirty && !document.hidden && performance.now() - lastPaint > Math.max(restMs, 4 * paintMs)) paint();
  setTimeout(clock, 100);
}

onTheme(() => { dirty = true; });
new ResizeObserver(() => { if (head) paint(); }).observe(element);
element.classList.add('td-batch');
element.batch = { get batches() { return batches; }, get head() { return head; }, get paintMs() { return paintMs; }, choose };
watch('value', () => { if ((props.value || '') !== run) open(props.value); });
open(props.value);
clock();
