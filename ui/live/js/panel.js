// The live panel: opens a run by id, passes what is pulled to charts, texts and figures, and shows the run's status.

import { onTheme } from '../../components/js/theme.js';
import { find, setText } from './dom.js';
import { LOCAL, WATCHED, bare, clearLine, refuse, showLink, showMessage, showStatus, showUnkept } from './run_line.js';
import { appendReply, cursorOf, emptySeries, replaceText } from './series.js';
import { showAnnotations } from './annotations.js';
import { csvOf, saveText } from './download.js';
import { makePointer } from './pointer.js';
import { makeFresh } from './fresh.js';
import { makeCharts } from './charts.js';
import { makeDistribution } from './distribution.js';
import { makePuller } from './pull.js';
import { makeTexts } from './texts.js';
import { makeRace } from './race.js';
import { makePhaseBar } from './phase_bar.js';
import { makePhases } from './phases.js';
import { makeVerdict } from './verdict.js';
import { makeCard, nextStep } from './card.js';
import { makeQuality } from './quality.js';
import { makeTiles } from './tiles.js';
import { makeDetails } from './details.js';
import { makeLedger } from './ledger.js';
import { showRemarks } from './remarks.js';
import { makeParts } from './step_time.js';
import { makeCrossing } from './crossing.js';
import { makeSlide } from './slide.js';

const EMPTY = 'Press Run: both arms write your prompt in turn, until it is decided which is faster. Texts, speed, memory and KV cache appear here as they are written, with proof that each choice took effect.';
const FORCED_PACE = new URLSearchParams(location.search).get('pace');
// Tokens arrive every 50 ms.
const RESTED_MS = 75, HELD_MS = 60;

const pointer = makePointer(find('.td-plot'), find('.td-moments'), find('.td-noted'), settings.charts);
const tools = { outliers: find('.td-outliers'), axes: find('.td-axis'), whole: find('.td-whole') };
const fresh = makeFresh(find('.td-plot'), find('.td-fresh'), settings.charts);
const charts = makeCharts(find('.td-plot'), settings.charts, tools, pointer, fresh);
const texts = makeTexts(find('.td-texts'));
const race = makeRace(find('.td-race'), find('.td-scrub'), find('.td-clock'), find('.td-speed'), texts, (at, columns) => {
  if (slide.at(at)) return;
  charts.only(columns);
  pointer.pointAt(at);
});
const slide = makeSlide(find('.td-slide'), find('.td-present'), () => head && { head, series, ended: over }, race);
const distribution = makeDistribution(find('.td-distribution'), find('.td-spread'), settings.fewest);
/** @returns {[Live.Head, Live.Series[], Live.Span | null] | null} */
const latencies = () => head && [head, series, charts.zoom];
const phases = makePhases(find('.td-progress'));
const bar = makePhaseBar(find('.td-run-bar'));
const verdict = makeVerdict(find('.td-sentence'), find('.td-basis'), find('.td-digest'), find('.td-unasked'), find('.td-gate'), find('.td-pays'));
const card = makeCard(find('.td-answer'), settings.acts ? next => nextStep(next, '#run', '#code-') : null);
const quality = makeQuality(find('.td-quality'));
const tiles = makeTiles(find('.td-tiles'));
const details = makeDetails(find('.td-rows'));
const ledger = makeLedger(find('.td-ledger'), () => (settings.links ? 'files/' + encodeURIComponent(run) + '.py' : ''));
const stepTime = makeParts(find('.td-parts'), {
  of: arm => arm.step, title: 'Where the time of a step goes', hint: 'the line under a part is the time that its bytes need',
  whole: 'Measured', numbers: 'Parts of a step as numbers', lacking: 'Not traced: ',
});
const start = makeParts(find('.td-start'), {
  of: arm => arm.start, title: 'From process to first token', whole: 'Together', numbers: 'Parts of a start as numbers',
});
const crossing = makeCrossing(find('.td-crossing'));

/** @type {Live.Series[]} */
let series = [];
/** @type {Live.Head | null} */
let head = null;
let run = '', titled = '', version = -1, asked = 0, heard = 0, closing = false, behind = false, over = false, quiet = false;
const puller = makePuller(ask, take, text => setText(find('.td-connection'), text));

async function ask() {
  const seq = ++asked, mine = run;
  const cur = series.length ? series.map(cursorOf) : [[0, 0, 0], [0, 0, 0]];
  if (closing) cur.forEach(cursor => { cursor[2] = 0; });
  const wait_ms = quiet && !closing && !behind ? HELD_MS : 0;
  const reply = JSON.parse(await server.pull({ run: mine, version, cur, wait_ms }));
  reply.seq = seq;
  return reply;
}

/** @param {(Live.Delta & { error?: string, seq: number })} reply */
function take(reply) {
  if (reply.error) { refuse(run, reply.error); return 'over'; }
  if (reply.run !== run || over) return over ? 'over' : 'wait';
  if (reply.head && reply.seq > heard) { heard = reply.seq; takeHead(reply); }
  if (!head) return 'wait';
  showStatus(reply.status, reply.queue);
  showUnkept(reply.trouble);
  puller.atLeast(reply.every_ms);
  let more = false, grew = false;
  reply.lanes.forEach((part, i) => {
    if (!series[i]) return;
    if (closing && part.cfirst === 0) replaceText(series[i], part);
    const got = appendReply(series[i], part);
    texts.append(i, got.added);
    grew = grew || got.tokens > 0 || got.samples > 0;
    more = more || part.n - part.first >= settings.most;
  });
  behind = more;
  if (grew) { charts.grow(); distribution.follow(latencies); slide.follow(); }
  if (window.tokendynoProbe) window.tokendynoProbe.arrived(series.map(columns => columns.t.length));
  if (!reply.ended) return more ? 'more' : 'wait';
  if (!closing) { closing = true; return 'more'; }
  if (!reply.lanes.every(part => part.cfirst === 0)) return 'more';
  finish(reply);
  return 'over';
}

/** @param {Live.Delta} reply */
function takeHead(reply) {
  const first = !head;
  head = reply.head;
  version = reply.version;
  if (first) {
    series = head.arms.map(emptySeries);
    texts.build(head.arms, head.unit);
    phases.build(head.arms);
    element.classList.toggle('single', head.arms.length === 1);
    setText(find('.td-empty-run'), '');
    bare(false);
  }
  setText(find('.td-title'), head.title);
  setText(find('.td-note'), head.note);
  phases.take(head);
  bar.take(settings.replays ? null : head.bar, reply.ended);
  verdict.take(head, reply.status);
  const waits = ['queued', 'running'].includes(reply.status) && head.arms.length === 2 && !head.quality;
  card.take(head.card, waits ? find('.td-sentence').textContent : '');
  find('.td-verdict').classList.toggle('td-carded', Boolean(head.card) || waits);
  setText(find('.td-sure'), head.card ? head.card.confidence : '');
  entitle(head.heading || bar.title());
  quality.take(head.quality);
  element.classList.toggle('td-reads', Boolean(head.quality));
  tiles.take(head.arms, head.differences);
  details.take(head.arms);
  const disturbed = head.arms.filter(arm => arm.spoilers.length).map(arm => arm.name);
  setText(find('.td-interference'), disturbed.length ? '\u25B2 Possible interference (' + disturbed.join(' and ') + ')' : '');
  showAnnotations(find('.td-annotations'), head.arms, head.unit);
  ledger.take(head.arms, head.digest);
  stepTime.take(head.arms);
  start.take(head.arms);
  crossing.take(head);
  showRemarks(find('.td-remarks'), head.arms);
  const broken = showMessage(reply.status, head.message);
  if (broken) bare(!head.arms.some(arm => arm.prompt_tokens));
  charts.take(head, series);
  setPace(reply.ended);
}

// On the machine that is being measured every pull and every paint takes CPU time from the model. A pull is then answered
// just after tokens have arrived, every other time that they do: as fresh as more pulls at any moment would be.
function setPace(ended) {
  quiet = !ended && (FORCED_PACE ? FORCED_PACE === 'quiet' : head.quiet && LOCAL);
  charts.pace(...(quiet ? [60, 1000, 6000] : [10, 300, 1000]));
  puller.every(...(quiet ? [RESTED_MS, true] : [60, false]));
}

// Of an ended run nothing is pulled any more, but texts may have been read by its arms since: by an ablation, in another tab.
async function learnQuality() {
  const mine = run, unread = over && !document.hidden && head.verdict.gate && !head.verdict.gate_run;
  if (!unread) return;
  const reply = JSON.parse(await server.pull({ run: mine, version: -1, cur: series.map(cursorOf), anew: true }).catch(() => '{}'));
  if (!reply.head || mine !== run || !over) return;
  head.verdict = reply.head.verdict;
  head.card = reply.head.card;
  verdict.take(head, reply.status);
  card.take(head.card);
}

/** @param {Live.Delta} reply */
function finish(reply) {
  over = true;
  setPace(true);
  phases.tick(series, true);
  texts.finish(series, head.texts);
  charts.end();
  race.ready(head, series);
  element.dataset.status = reply.status;
  element.dataset.over = reply.run;
  trigger('finished', { run: reply.run, status: reply.status });
  slide.draw();
  if (settings.replays && !slide.open && !matchMedia('(prefers-reduced-motion: reduce)').matches) race.toggle();
}

/** @param {string} id */
function open(id) {
  run = id || '';
  series = []; head = null; version = -1; heard = asked; closing = false; behind = false; over = false;
  clearLine(run, ['interference', 'sure']);
  find('.td-verdict').classList.remove('td-carded');
  element.classList.remove('td-reads');
  if (settings.links) window.dispatchEvent(new Event('tokendyno-run'));
  entitle('');
  find('.td-texts').replaceChildren();
  showAnnotations(find('.td-annotations'), []);
  race.clear(); bar.clear(); phases.clear(); verdict.clear(); card.clear(); quality.clear(); tiles.clear(); details.clear(); ledger.clear(); stepTime.clear(); start.clear(); crossing.clear();
  charts.reset(run);
  setText(find('.td-empty-run'), run || !settings.links ? '' : settings.acts ? [EMPTY, settings.first].filter(Boolean).join(' ') : WATCHED);
  if (!run) bare(true);
  if (settings.links) showLink(run);
  if (!run) { puller.stop(); return; }
  puller.begin();
}

// The title of the browser's tab: what is shown, or how long it still goes.
/** @param {string} text */
function entitle(text) {
  if (!settings.links || text === titled) return;
  titled = text;
  window.tokendynoAddress?.title('compare', text);
}

function clock() {
  if (!element.isConnected) return;
  if (head && !over) entitle(head.heading || bar.title());
  if (head && !over && !document.hidden) { bar.tick(); phases.tick(series); }
  setTimeout(clock, quiet ? 1000 : 100);
}

distribution.openOn(latencies);
find('.td-csv').addEventListener('click', () => { if (head) saveText(csvOf(head, series), 'tokendyno-' + run + '.csv'); });
find('.td-png').addEventListener('click', () => { if (head) charts.picture('tokendyno-' + run); });
onTheme(() => charts.touch());
if (settings.links) {
  window.addEventListener('tokendyno-measured', learnQuality);
  document.addEventListener('visibilitychange', learnQuality);
}
new ResizeObserver(() => charts.touch()).observe(element);
element.classList.add('td-live');
element.live = { get series() { return series; }, get head() { return head; } };
watch('value', () => { if ((props.value || '') !== run) open(props.value); });
bare(true);  // until there is something to show
open(props.value);
clock();
