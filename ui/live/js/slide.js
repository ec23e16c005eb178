// A slide on the whole screen, for an audience: one headline, one figure, one chart, or both texts at their true speed.
// P opens and leaves it, Space plays, Esc leaves; on Stories the next and the previous one are a key away, as presenters
// for lectures send it.

/** @import { makeRace } from './race.js' */
import { isKeyOfPage } from '../../components/js/typing.js';
import { el, setText } from './dom.js';
import { RACE_TAIL, charactersAt } from './race.js';
import { drawSlideChart, slideLines } from './slide_chart.js';

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
  let racing = false, drawn = 0, due = 0;
  /** @type {{ body: HTMLElement, whole: string }[]} */
  let panes = [];
  const story = () => settings.replays ? window.tokendynoStory : null;

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
    clearTimeout(due);
    due = 0;
    drawn = performance.now();
    const run = shown(), told = story();
    if (!dialog.open) return;
    const card = run?.head.card, key = told?.chart ?? 'latency', figures = run?.head.figures ?? {};
    const chosen = figures[key] ? key : 'latency', figure = figures[chosen] ?? { lead: '', figure: '', tail: '' };
    const title = told?.title || run?.head.title || '';
    dialog.setAttribute('aria-label', title);
    setText(part('title'), title);
    const note = run?.head.note ?? '';
    setText(part('what'), [told && run ? run.head.title : '', note && note[0].toUpperCase() + note.slice(1)].filter(Boolean).join('. '));
    for (const name of ['lead', 'figure', 'tail']) setText(part(name), figure[name]);
    setText(part('badge'), chosen === 'latency' && card && !told ? card.recommendation : '');
    setText(part('claim'), told ? 'Claimed: ' + told.claim : '');
    setText(part('proof'), run?.head.digest ? (run.head.digest.status === 'verified' ? '\u2713 ' : '') + run.head.digest.line : '');
    part('proof').className = 'td-slide-proof ' + (run?.head.digest?.status ?? '');
    setText(part('place'), told ? told.place + 1 + ' of ' + told.count : '');
    for (const [go, other] of /** @type {[HTMLElement, { title: string } | undefined][]} */ ([[back, told?.before], [on, told?.after]])) {
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
    panes = head.arms.map((arm, i) => {
      const pane = el('section', 'arm-' + arm.name.toLowerCase()), title = el('h3', ''), body = el('div', 'td-slide-text');
      const rate = arm.tiles.find(tile => tile.key === 'rate');
      title.append(el('span', 'td-arm', arm.name), document.createTextNode(' ' + (head.card?.names[arm.name] ?? arm.label ?? '')));
      if (rate && rate.value !== 'n/a') title.append(el('small', '', rate.value + ' ' + rate.unit));
      body.tabIndex = 0;
      body.setAttribute('role', 'region');
      body.setAttribute('aria-label', 'Text of arm ' + arm.name);
      pane.append(title, body);
      return { pane, body, whole: series[i].text };
    }).map(({ pane, ...rest }, i) => { if (!i) texts.replaceChildren(); texts.append(pane); return rest; });
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
    const told = story(), other = told?.[way];
    if (!told || !other) return;
    racing = false;
    told.open(other.name);
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
    follow() { if (dialog.open && !racing && !due) due = setTimeout(draw, Math.max(0, REDRAW_MS - (performance.now() - drawn))); },
    // A moment of the race; null: its end. Whether the slide covers the page, which then need not show it.
    at(at) { if (dialog.open) { write(at); tell(); } return dialog.open; },
    get open() { return dialog.open; },
  };
}
