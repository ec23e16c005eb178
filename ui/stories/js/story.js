// The first page: what this is, one story with its one number, the button that runs it here, and the other stories as
// cards. The story's recording plays in the panel beside it.

import { add, afterPress, button } from '../../components/js/dom.js';

const WHAT = 'Run one prompt through two setups of a Transformers model, and see what each optimization is worth, with proof.';
const first = element.querySelector('.td-first'), findings = element.querySelector('.td-findings'), text = element.querySelector('.td-story-text');

/** A paragraph; what stands between backquotes is code. @param {HTMLElement} parent @param {string} className @param {string} words */
function paragraph(parent, className, words) {
  const node = add(parent, 'p', className);
  words.split('`').forEach((part, i) => {
    if (i % 2) add(node, 'code', '', part); else node.append(part);
  });
  return node;
}

/** @param {string} name @param {string} [recording] */
function choose(name, recording) {
  if (window.tokendynoAddress) window.tokendynoAddress.tell('stories', ['story'], [name]);
  trigger('choose', { name, recording });
}

/** The curves of both arms; their scale is their own. @param {HTMLElement} parent @param {number[][]} curves */
function drawCurves(parent, curves) {
  if (!curves.length) return;
  const space = 'http://www.w3.org/2000/svg', picture = document.createElementNS(space, 'svg');
  picture.setAttribute('viewBox', '0 0 100 40');
  picture.setAttribute('preserveAspectRatio', 'none');
  picture.setAttribute('aria-hidden', 'true');
  curves.forEach((curve, i) => {
    const line = document.createElementNS(space, 'polyline');
    line.setAttribute('points', curve.map((value, at) => 100 * at / Math.max(1, curve.length - 1) + ',' + (38 - 36 * value)).join(' '));
    line.setAttribute('class', i ? 'arm-b' : 'arm-a');
    picture.append(line);
  });
  parent.append(picture);
}

/** Where nothing is run, the button plays the recording. @param {Story.ShownStory} one */
function play(one) {
  if (one.batching) { location.search = '?' + new URLSearchParams({ view: 'batching', run: 'recorded-' + one.played[0].recording }); return; }
  const race = document.querySelector('#story-live .td-race'), moment = document.querySelector('#story-live .td-scrub');
  if (!(race instanceof HTMLButtonElement) || !(moment instanceof HTMLInputElement) || race.disabled) return;
  moment.value = '0';
  moment.dispatchEvent(new Event('input'));  // from its beginning; this also stops it
  race.click();
}

/** @param {Story.ShownStory} one @param {string} noRuns */
function drawFirst(one, noRuns) {
  first.replaceChildren();
  add(first, 'h2', 'td-what', WHAT);
  const said = add(first, 'p', 'td-story-number');
  if (one.number) add(said, 'b', '', one.number);
  add(said, 'span', '', one.headline);
  if (one.times) add(first, 'p', 'td-story-times', one.times);
  add(first, 'p', 'td-story-why', one.why);
  first.append(button('td-take', noRuns ? '\u25B6 Play the recording' : '\u25B6 Run it on this machine', '', () => {
    if (noRuns) play(one); else trigger('take', { name: one.name });
  }));
  paragraph(first, 'td-story-here', noRuns || one.here);
  const more = add(first, 'p', 'td-story-links');
  for (const [view, words] of [['compare', 'Compare a model of your own'], ['fit', 'What fits on my GPU?']].slice(noRuns ? 1 : 0)) {
    const link = add(more, 'a', '', words);
    link.href = '?' + new URLSearchParams({ view });
  }
}

/** @param {Story.Shown} shown @param {Story.ShownStory} one */
function drawCards({ stories }, one) {
  findings.replaceChildren();
  add(findings, 'h3', '', 'More findings, each with its recording');
  for (const other of stories) {
    const card = button('td-finding', '', '', () => choose(other.name));
    findings.append(card);
    if (other === one) card.setAttribute('aria-current', 'true');
    add(card, 'strong', '', other.title);
    const said = add(card, 'span', 'td-finding-number');
    if (other.number) add(said, 'b', '', other.number + ' ');
    said.append(other.headline);
    drawCurves(card, other.curves);
  }
}

/** @param {Story.ShownStory} one @param {string} playing */
function drawText(one, playing) {
  text.replaceChildren();
  const head = add(text, 'header', '');
  add(head, 'h2', '', one.title);
  const now = one.played.find(({ recording }) => recording === playing) || one.played[0];
  const recorded = paragraph(head, 'td-story-recorded', (one.batching ? '' : 'Playing: ') + now.recorded + ' ');
  if (one.batching) {
    const link = add(recorded, 'a', '', 'Open the recording on the Batching page');
    link.href = '?' + new URLSearchParams({ view: 'batching', run: 'recorded-' + now.recording });
  }
  one.played.filter((other) => other !== now).forEach(({ recording, shows }) => {
    recorded.append(button('td-story-also', 'Play: ' + (shows || 'the recording of this story'), '', () => choose(one.name, recording)));
  });
  const said = add(text, 'div', 'td-story-words');
  one.text.forEach((words) => paragraph(said, '', words));
  add(said, 'p', 'td-story-caption', 'The number: ' + one.caption + '.');
  const claim = add(text, 'div', 'td-claim');
  const words = add(claim, 'p', 'td-claim-said', one.claim + ' ');
  add(words, 'cite', '', one.source);
  for (const { name, title, word, remark, sentence } of one.claims) {
    const measured = add(claim, 'p', 'td-claim-found', '');
    add(measured, 'b', 'td-word ' + word.replaceAll(' ', '-'), word[0].toUpperCase() + word.slice(1) + ': ');
    const link = add(measured, 'a', '', title);
    link.href = '?' + new URLSearchParams({ view: 'claims', name });
    link.title = sentence;
    measured.append(remark ? ' (' + remark + ').' : '.');
  }
  paragraph(claim, 'td-claim-found', one.found);
}

function draw() {
  /** @type {Story.Shown} */
  const shown = JSON.parse(props.value), { at, playing, stories } = shown;
  const one = stories.find(({ name }) => name === at) || stories[0];
  if (!one) return;
  const slides = stories.filter(({ batching }) => !batching), place = slides.indexOf(one);
  window.tokendynoStory = place < 0 ? null : {
    title: one.title, claim: one.claim, chart: one.chart, place, count: slides.length, before: slides[place - 1], after: slides[place + 1],
    open: name => choose(name),
  };
  drawFirst(one, shown.no_runs);
  drawCards(shown, one);
  drawText(one, playing);
  window.tokendynoAddress?.title('stories', new URLSearchParams(location.search).get('story') ? one.title : '');
}
draw();
watch('value', afterPress(element, draw));
