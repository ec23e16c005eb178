// The live panel: opens a run by id, feeds what is pulled to charts, texts and figures, and says how it stands.

const STATUS_WORDS = {
  queued: 'Waiting for the bench', running: 'Running', done: 'Done',
  failed: 'Failed', cancelled: 'Stopped', interrupted: 'Interrupted',
};
const QUIET_NOTE = "charts refresh slowly while this machine's own cores are measured";
const LOCAL = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);
const FORCED_PACE = new URLSearchParams(location.search).get('pace');

const charts = makeCharts(find('.td-plot'), props.panels);
const texts = makeTexts(find('.td-texts'));
const phases = makePhases(find('.td-ways'));
const tiles = makeTiles(find('.td-tiles'));
const details = makeDetails(find('.td-rows'));
const ledger = makeLedger(find('.td-ledger'));

let run = '', lanes = [], head = null, version = -1, asked = 0, heard = 0, closing = false, over = false, quiet = false;
const puller = makePuller(ask, take, text => say(find('.td-trouble'), text));

async function ask() {
  const seq = ++asked, mine = run;
  const cur = lanes.length ? lanes.map(cursorOf) : [[0, 0, 0], [0, 0, 0]];
  if (closing) cur.forEach(cursor => { cursor[2] = 0; });
  const reply = JSON.parse(await server.pull({ run: mine, version, cur }));
  reply.seq = seq;
  return reply;
}

function take(reply) {
  if (reply.error) { refuse(reply.error); return 'over'; }
  if (reply.run !== run || over) return over ? 'over' : 'wait';
  if (reply.head && reply.seq > heard) { heard = reply.seq; takeHead(reply); }
  if (!head) return 'wait';
  say(find('.td-status'), STATUS_WORDS[reply.status] || reply.status);
  element.dataset.status = reply.status;
  let more = false, grew = false;
  reply.lanes.forEach((lane, i) => {
    if (!lanes[i]) return;
    if (closing && lane.cfirst === 0) takeWholeText(lanes[i], lane);
    const got = takeLane(lanes[i], lane);
    texts.append(i, got.added);
    grew = grew || got.tokens > 0 || got.samples > 0;
    more = more || lane.n - lane.first >= props.most;
  });
  if (grew) charts.touch();
  if (window.tokendynoProbe) window.tokendynoProbe.arrived(lanes.map(lane => lane.t.length));
  if (!reply.ended) return more ? 'more' : 'wait';
  if (!closing) { closing = true; return 'more'; }
  if (!reply.lanes.every(lane => lane.cfirst === 0)) return 'more';
  finish(reply);
  return 'over';
}

function takeHead(reply) {
  const first = !head;
  head = reply.head;
  version = reply.version;
  if (first) {
    lanes = head.arms.map(emptyLane);
    texts.build(head.arms, head.unit);
    phases.build(head.arms);
    element.classList.toggle('single', head.arms.length === 1);
    say(find('.td-empty-run'), '');
  }
  say(find('.td-title'), head.title);
  say(find('.td-note'), head.note);
  phases.take(head);
  tiles.take(head.arms);
  details.take(head.arms);
  say(find('.td-verdict-text'), head.verdict);
  const spoiled = head.arms.filter(arm => arm.spoilers.length).map(arm => arm.name);
  say(find('.td-spoiled'), spoiled.length ? '\u25B2 ' + spoiled.join(' and ') + ' may be spoiled: see the remarks' : '');
  find('.td-verdict-text').title = head.verdict;
  takeMarks(find('.td-marks'), head.arms, head.unit);
  ledger.take(head.arms);
  takeRemarks(find('.td-remarks'), head.arms);
  const broken = reply.status === 'failed' || reply.status === 'interrupted';
  say(find('.td-failure'), broken ? head.message || 'The run broke off.' : '');
  say(find('.td-message'), broken ? '' : head.message);
  charts.take(head, lanes);
  setPace(reply.ended);
}

// On the machine that is being measured every paint and every pull takes cores from the model.
function setPace(ended) {
  quiet = !ended && (FORCED_PACE ? FORCED_PACE === 'quiet' : head.quiet && LOCAL);
  if (quiet) { charts.pace(30, 1500, 3000); puller.every(250); } else { charts.pace(0.6, 0, 400); puller.every(80); }
  say(find('.td-quiet'), quiet ? QUIET_NOTE : '');
}

function finish(reply) {
  over = true;
  setPace(true);
  phases.tick(lanes, true);
  texts.finish(lanes);
  charts.end();
  element.dataset.status = reply.status;
  element.dataset.over = reply.run;
  trigger('finished', { run: reply.run, status: reply.status });
}

function refuse(text) {
  say(find('.td-status'), '');
  say(find('.td-failure'), text);
  trigger('finished', { run, status: 'unknown' });
}

function open(id) {
  run = id || '';
  lanes = []; head = null; version = -1; heard = asked; closing = false; over = false;
  delete element.dataset.status;
  delete element.dataset.over;
  for (const name of ['status', 'title', 'note', 'failure', 'message', 'trouble', 'quiet', 'verdict-text', 'spoiled']) say(find('.td-' + name), '');
  find('.td-texts').replaceChildren();
  find('.td-remarks').replaceChildren();
  takeMarks(find('.td-marks'), []);
  delete find('.td-remarks').dataset.shown;
  phases.clear(); tiles.clear(); details.clear(); ledger.clear();
  charts.reset(run);
  say(find('.td-empty-run'), run ? '' : 'Nothing has run yet. Press Run: arm A goes first, then arm B, on the same prompt.');
  find('.td-link').hidden = !run;
  if (!run) { puller.stop(); return; }
  const link = new URL(location.href);
  link.search = '?' + new URLSearchParams({ run });
  link.hash = '';
  find('.td-permalink').href = link.href;
  say(find('.td-permalink'), link.search);
  const here = new URL(location.href);
  here.searchParams.set('run', run);
  if (here.href !== location.href) history.replaceState(history.state, '', here.href);
  puller.begin();
}

async function copyLink() {
  const href = find('.td-permalink').href;
  try {
    await navigator.clipboard.writeText(href);
    say(find('.td-copied'), 'Copied');
  } catch (error) {
    window.prompt('Copy this link:', href);
  }
  setTimeout(() => say(find('.td-copied'), ''), 2000);
}

function clock() {
  if (!element.isConnected) return;
  if (head && !over && !document.hidden) phases.tick(lanes);
  setTimeout(clock, quiet ? 1000 : 100);
}

find('.td-copy').addEventListener('click', copyLink);
new MutationObserver(() => charts.touch()).observe(document.body, { attributes: true, attributeFilter: ['class'] });
new ResizeObserver(() => charts.touch()).observe(element);
element.classList.add('td-live');
element.bench = { get lanes() { return lanes; }, get head() { return head; } };
watch('value', () => { if ((props.value || '') !== run) open(props.value); });
charts.start().then(() => { open(props.value); clock(); });
