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

/** Where nothing is run, the button plays the recording. @param {Story.ShownStory} story */
function play(story) {
  if (story.batching) { location.search = '?' + new URLSearchParams({ view: 'batching', run: 'recorded-' + story.played[0].recording }); return; }
  const race = document.querySelector('#story-live .td-race'), moment = document.querySelector('#story-live .td-scrub');
  if (!(race instanceof HTMLButtonElement) || !(moment instanceof HTMLInputElement) || race.disabled) return;
  moment.value = '0';
  moment.dispatchEvent(new Event('input'));  // from its beginning; this also stops it
  race.click();
}

/** @param {Story.ShownStory} story @param {string} noRuns */
function drawFirst(story, noRuns) {
  first.replaceChildren();
  add(first, 'h2', 'td-what', WHAT);
  const said = add(first, 'p', 'td-story-number');
  if (story.number) add(said, 'b', '', story.number);
  add(said, 'span', '', story.headline);
  if (story.times) add(first, 'p', 'td-story-times', story.times);
  if (story.number) add(first, 'p', 'td-story-caption', story.caption + '.');
  add(first, 'p', 'td-story-why', story.why);
  first.append(button('td-take', noRuns ? '\u25B6 Play the recording' : '\u25B6 Run it on this machine', '', () => {
    if (noRuns) play(story); else trigger('take', { name: story.name });
  }));
  paragraph(first, 'td-story-here', noRuns || story.here);
  const more = add(first, 'p', 'td-story-links');
  for (const [view, words] of [['compare', 'Compare a model of your own'], ['fit', 'What fits on my GPU?']].slice(noRuns ? 1 : 0)) {
    const link = add(more, 'a', '', words);
    link.href = '?' + new URLSearchParams({ view });
  }
}

/** @param {Story.Shown} shown @param {Story.ShownStory} story */
function drawCards({ stories }, story) {
  findings.replaceChildren();
  add(findings, 'h3', '', 'More findings, each with its recording');
  for (const other of stories) {
    const card = button('td-finding', '', '', () => choose(other.name));
    findings.append(card);
    if (other === story) card.setAttribute('aria-current', 'true');
    add(card, 'strong', '', other.title);
    const said = add(card, 'span', 'td-finding-number');
    if (other.number) add(said, 'b', '', other.number + ' ');
    said.append(other.headline);
    drawCurves(card, other.curves);
  }
}

/** @param {Story.ShownStory} story @param {string} playing */
function drawText(story, playing) {
  text.replaceChildren();
  text.classList.toggle('td-many', story.batching);
  const head = add(text, 'header', '');
  add(head, 'h2', '', story.title);
  const now = story.played.find(({ recording }) => recording === playing) || story.played[0];
  const recorded = paragraph(head, 'td-story-recorded', (story.batching ? '' : 'Playing: ') + now.recorded + ' ');
  if (story.batching) {
    const link = add(recorded, 'a', '', 'Open the recording on the Batching page');
    link.href = '?' + new URLSearchParams({ view: 'batching', run: 'recorded-' + now.recording });
  }
  story.played.filter((other) => other !== now).forEach(({ recording, shows }) => {
    recorded.append(button('td-story-also', 'Play: ' + (shows || 'the recording of this story'), '', () => choose(story.name, recording)));
  });
  const said = add(text, 'div', 'td-story-words');
  story.text.forEach((words) => paragraph(said, '', words));
  const claim = add(text, 'div', 'td-claim');
  const words = add(claim, 'p', 'td-claim-said', story.claim + ' ');
  add(words, 'cite', '', story.source);
  for (const { name, title, word, remark, sentence } of story.claims) {
    const measured = add(claim, 'p', 'td-claim-found', '');
    add(measured, 'b', 'td-word ' + word.replaceAll(' ', '-'), word[0].toUpperCase() + word.slice(1) + ': ');
    const link = add(measured, 'a', '', title);
    link.href = '?' + new URLSearchParams({ view: 'claims', name });
    link.title = sentence;
    measured.append(remark ? ' (' + remark + ').' : '.');
  }
  paragraph(claim, 'td-claim-found', story.found);
}

function draw() {
  /** @type {Story.Shown} */
  const shown = JSON.parse(props.value), { at, playing, stories } = shown;
  const story = stories.find(({ name }) => name === at) || stories[0];
  if (!story) return;
  const slides = stories.filter(({ batching }) => !batching), place = slides.indexOf(story);
  window.tokendynoStory = place < 0 ? null : {
    title: story.title, claim: story.claim, number: story.number, headline: story.headline, chart: story.chart, place, count: slides.length, before: slides[place - 1], after: slides[place + 1],
    open: name => choose(name),
  };
  drawFirst(story, shown.no_runs);
  drawCards(shown, story);
  drawText(story, playing);
  window.tokendynoAddress?.title('stories', new URLSearchParams(location.search).get('story') ? story.title : '');
}
draw();
watch('value', afterPress(element, draw));
