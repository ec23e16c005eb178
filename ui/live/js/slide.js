// A slide on the whole screen, for an audience: one headline, one figure, one chart, or both texts at their true speed.
// P opens and leaves it, Space plays, Esc leaves; on Stories the next and the previous one are a key away, as presenters
// for lectures send it.

/** @import { makeRace } from './race.js' */
import { add, badge, css, isKeyOfPage, setText } from '../../components/js/dom.js';
import { look, plotly, withoutMarkup } from '../../components/js/plot.js';
import { chartTraces, chartUnit, curveLabels, firstIndex, measuredLines } from './chart_data.js';
import { outlierTop } from './columns.js';
import { RACE_TAIL, charactersAt } from './race.js';

const REDRAW_MS = 500;

/**
 * @param {HTMLDialogElement} dialog @param {HTMLElement} button
 * @param {() => { head: Live.Head, series: Live.Series[], ended: boolean } | null} shown what the panel shows
 * @param {ReturnType<typeof makeRace>} race
 */
export function makeSlide(dialog, button, shown, race) {
  /** @param {string} name @returns {HTMLElement} */
  const part = name => dialog.querySelector('.td-slide-' + name);
  const page = part('page'), chart = part('chart'), texts = part('texts'), play = part('play'), back = part('back'), on = part('on');
  const reduced = matchMedia('(prefers-reduced-motion: reduce)');
  let racing = false, drawn = 0, redraw = 0;
  /** @type {{ body: HTMLElement, whole: string }[]} */
  let panes = [];
  const storyShown = () => settings.replays ? window.tokendynoStory : null;

  function open() {
    if (dialog.open || !shown()) return;
    racing = false;
    dialog.showModal();
    race.whole();
    draw();
    page.focus();
    page.requestFullscreen?.().catch(() => {});  // a frame may not be allowed to; the slide then fills its window
  }

  function closed() {
    if (document.fullscreenElement === page) document.exitFullscreen();
    race.whole();
  }

  function draw() {
    clearTimeout(redraw);
    redraw = 0;
    drawn = performance.now();
    const run = shown(), story = storyShown();
    if (!dialog.open) return;
    const card = run?.head.card, key = story?.chart ?? 'latency', figures = run?.head.figures ?? {};
    const chosen = figures[key] ? key : 'latency', ofRun = figures[chosen] ?? { lead: '', figure: '', tail: '' };
    const figure = story ? { lead: '', figure: story.number, tail: story.headline } : ofRun;  // a story has one number everywhere
    const title = story?.title || run?.head.title || '';
    dialog.setAttribute('aria-label', title);
    setText(part('title'), title);
    const note = run?.head.note ?? '';
    setText(part('what'), [story && run ? run.head.title : '', note && note[0].toUpperCase() + note.slice(1)].filter(Boolean).join('. '));
    for (const name of ['lead', 'figure', 'tail']) setText(part(name), figure[name]);
    setText(part('badge'), chosen === 'latency' && card && !story ? card.recommendation : '');
    setText(part('claim'), story ? 'Claimed: ' + story.claim : '');
    setText(part('proof'), run?.head.digest ? (run.head.digest.status === 'verified' ? '\u2713 ' : '') + run.head.digest.line : '');
    part('proof').className = 'td-slide-proof ' + (run?.head.digest?.status ?? '');
    setText(part('place'), story ? story.place + 1 + ' of ' + story.count : '');
    for (const [go, other] of /** @type {[HTMLElement, { title: string } | undefined][]} */ ([[back, story?.before], [on, story?.after]])) {
      go.hidden = !other;
      setText(go.querySelector('span'), other?.title ?? '');
    }
    dialog.classList.toggle('td-racing', racing);
    chart.hidden = racing;
    texts.hidden = !racing;
    part('curves').hidden = !racing;
    if (run && !racing) drawSlideChart(chart, slideLines(settings.charts, chosen, run, card?.names ?? {}));
    if (run && racing) buildTexts(run);
    tell();
  }

  function tell() {
    const { able, playing, clock } = race.state();
    play.hidden = !able;
    setText(play.querySelector('span'), racing && playing ? 'Pause' : 'Play the race');
    setText(part('clock'), racing ? clock : '');
  }

  /** @param {{ head: Live.Head, series: Live.Series[] }} run */
  function buildTexts({ head, series }) {
    texts.replaceChildren();
    panes = head.arms.map((arm, i) => {
      const pane = add(texts, 'section', 'arm-' + arm.name.toLowerCase()), title = add(pane, 'h3'), body = add(pane, 'div', 'td-slide-text');
      const rate = arm.tiles.find(tile => tile.key === 'rate');
      title.append(badge(arm.name), ' ' + (head.card?.names[arm.name] ?? arm.label ?? ''));
      if (rate && rate.value !== 'n/a') add(title, 'small', '', rate.value + ' ' + rate.unit);
      Object.assign(body, { tabIndex: 0, role: 'region', ariaLabel: 'Text of arm ' + arm.name });
      return { body, whole: series[i].text };
    });
    texts.style.setProperty('--arms', String(panes.length));
    write(race.state().at);
  }

  /** @param {number | null} at seconds of the race; null: at its end */
  function write(at) {
    const run = shown();
    if (!run || !racing) return;
    panes.forEach(({ body, whole }, i) => {
      const { t } = run.series[i], { pace } = run.head.arms[i];
      const written = at === null ? whole.length : t.length ? charactersAt(pace, t[0], at) : 0;
      setText(body, whole.slice(0, written).slice(-RACE_TAIL));
      body.scrollTop = body.scrollHeight;
    });
  }

  // Those who asked for less motion see both texts first, and press once more to play them.
  function toggle() {
    if (!race.state().able) return;
    const begins = !racing;
    racing = true;
    if (begins) draw();
    if (!begins || !reduced.matches) race.toggle();
    tell();
  }

  /** @param {'before' | 'after'} way */
  function turn(way) {
    const story = storyShown(), other = story?.[way];
    if (!story || !other) return;
    racing = false;
    story.open(other.name);
    page.focus();
  }

  function keyed(event) {
    const at = /** @type {HTMLElement} */ (event.target), step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === ' ' && at instanceof HTMLButtonElement && at !== play) return;
    if (event.key === ' ') toggle();
    else if (step && racing) race.step(step);
    else if (['PageUp', 'ArrowLeft'].includes(event.key)) turn('before');
    else if (['PageDown', 'ArrowRight'].includes(event.key)) turn('after');
    else if (event.key.toLowerCase() === 'p' && isKeyOfPage(event)) dialog.close();
    else return;
    event.preventDefault();
  }

  button.addEventListener('click', open);
  play.addEventListener('click', toggle);
  part('curves').addEventListener('click', () => { racing = false; race.whole(); draw(); page.focus(); });
  part('leave').addEventListener('click', () => dialog.close());
  back.addEventListener('click', () => turn('before'));
  on.addEventListener('click', () => turn('after'));
  dialog.addEventListener('keydown', keyed);
  dialog.addEventListener('close', closed);
  page.addEventListener('fullscreenchange', () => { if (document.fullscreenElement !== page) dialog.close(); });
  new ResizeObserver(draw).observe(page);
  document.addEventListener('keydown', event => {
    if (event.key.toLowerCase() !== 'p' || !isKeyOfPage(event) || document.querySelector('dialog[open]')) return;
    if (!element.checkVisibility() || element.classList.contains('td-bare')) return;
    event.preventDefault();
    open();
  });

  return {
    draw,
    // New values have come; drawn now and then, since drawing takes time from the model.
    follow() { if (dialog.open && !racing && !redraw) redraw = setTimeout(draw, Math.max(0, REDRAW_MS - (performance.now() - drawn))); },
    // A moment of the race; null: its end. Whether the slide covers the page, which then need not show it.
    at(at) { if (dialog.open) { write(at); tell(); } return dialog.open; },
    get open() { return dialog.open; },
  };
}

// --- its chart: large letters, few grid lines, and nothing to operate ---

const LONGEST_NAME = 32, ROOM_ABOVE = 1.12, LETTER_EM = 0.7;

/**
 * What a slide draws: title with unit, lines in that unit, and the ends of both axes.
 * @param {Live.Chart[]} charts @param {string} key
 * @param {{ head: Live.Head, series: Live.Series[], ended: boolean }} run @param {{ [arm: string]: string }} names
 */
function slideLines(charts, key, { head, series, ended }, names) {
  const at = Math.max(0, charts.findIndex(chart => chart.key === key)), chart = charts[at];
  /** @type {any} */
  const view = { head, series, ended, hidden: new Set(), axis: 'token', zoom: null, ink: '', neutral: '' };
  const units = charts.map(each => chartUnit(each, view, null)), { unit, scale } = units[at];
  const traces = chartTraces(charts, { ...view, units, tops: null });
  const runs = head.card?.pairs.length ?? 1, of = runs > 1 ? ', mean of ' + runs + ' runs' : '';  // the line is the last of them
  const lines = traces.filter(trace => trace.meta?.chart === chart.key && trace.meta.arm && trace.meta.curve !== 'ranks' && trace.y.length).map(trace => {
    const arm = head.arms.find(({ name }) => name === trace.meta.arm), last = trace.y[trace.y.length - 1];
    const mean = arm.tiles.find(tile => tile.key === 'latency'), name = names[arm.name] || '';
    const called = name.length > LONGEST_NAME ? name.slice(0, LONGEST_NAME) + '\u2026' : name;
    const figure = chart.key === 'latency' && mean && mean.value !== 'n/a' ? mean.value + ' ' + mean.unit + of : Number(last.toPrecision(3)) + ' ' + unit;
    const who = [arm.name, called === arm.name ? '' : called].filter(Boolean).join(' ');
    const label = trace.meta.curve ? '' : who + (trace.meta.kind ? ', ' + trace.meta.kind + ' layers' : '') + ': ' + figure;
    return { arm: arm.name, curve: Boolean(trace.meta.curve), label, x: trace.x, y: trace.y, color: trace.line.color, dash: trace.line.dash, width: trace.line.width };
  });
  const measured = lines.filter(line => !line.curve);
  const [first] = measuredLines(chart), from = firstIndex(first, head);
  const outlier = chart.unit === 'ms' ? outlierTop(series.map(columns => columns[first.column]), from) : null;
  const all = measured.flatMap(line => line.y), most = Math.max(0, ...all), least = all.length ? Math.min(...all) : 0;
  const top = outlier === null ? most : outlier * first.scale * scale;
  const low = chart.from_zero ? 0 : Math.max(0, Math.min(least, most * (1 - chart.min_span)) - 0.1 * (most - least));
  const bounds = curveLabels(chart, at, { ...view, units }, '').map(({ text, y }) => ({ text, y }));
  const title = (head.unit === 'forward' && chart.encoder?.title) || chart.title || head.memory_label;
  return {
    title: title[0].toUpperCase() + title.slice(1) + ', ' + unit, short: (chart.title || 'Memory') + ', ' + unit, lines, bounds, low, high: top > low ? low + ROOM_ABOVE * (top - low) : low + 1,
    last: Math.max(1, ...measured.map(line => line.x[line.x.length - 1] ?? 0)), word: head.unit === 'forward' ? 'forward pass' : 'token',
  };
}

// Draws it into a box, in its size and with letters of the size of its font.
/** @param {HTMLElement} box @param {ReturnType<typeof slideLines>} what */
async function drawSlideChart(box, { title, short, lines, bounds, low, high, last, word }) {
  await plotly();
  const size = parseFloat(getComputedStyle(box).fontSize), grid = css('--border-color-primary'), wide = box.clientWidth;
  if (wide < 8 * size || box.clientHeight < 8 * size || !lines.length) return Plotly.purge(box);
  const said = title.length * LETTER_EM * size < box.clientHeight ? title : short;  // it stands on its side
  const axis = { gridcolor: grid, linecolor: grid, zeroline: false, nticks: 6 };
  const traces = lines.map(line => ({
    x: line.x, y: line.y, mode: 'lines', name: withoutMarkup(line.label), showlegend: Boolean(line.label),
    line: { color: line.color, dash: line.dash, width: (line.curve ? 0.08 : 0.1 * line.width) * size },
  }));
  Plotly.react(box, traces, {
    width: wide, height: box.clientHeight, margin: { t: 4.5 * size, r: size, b: 3.5 * size, l: 4 * size },
    ...look(size, '--body-text-color'), legend: { orientation: 'h', x: 0, y: 1.01, yanchor: 'bottom', traceorder: 'normal' },
    xaxis: { ...axis, range: [0, last], showgrid: false, title: { text: word, standoff: 0 } }, yaxis: { ...axis, range: [low, high], title: { text: said, standoff: 0 } },
    annotations: bounds.map(({ text, y }) => ({ text: withoutMarkup(text), x: 1, xref: 'paper', y, xanchor: 'right', yanchor: 'bottom', showarrow: false, font: { size } })),
  }, { staticPlot: true });
}
