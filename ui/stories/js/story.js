// The list of stories, and the text of one. Text reaches the document through textContent only.

import { afterPress } from '../../components/js/press.js';
import { add } from '../../components/js/add.js';

const list = element.querySelector('.td-story-list'), text = element.querySelector('.td-story-text');

// A paragraph; what stands between backquotes is code.
/** @param {HTMLElement} parent @param {string} className @param {string} words */
function paragraph(parent, className, words) {
  const node = add(parent, 'p', className);
  words.split('`').forEach((part, i) => {
    if (i % 2) add(node, 'code', '', part); else node.append(document.createTextNode(part));
  });
  return node;
}

/** @param {string} name */
function choose(name) {
  if (window.tokendynoAddress) window.tokendynoAddress.tell('stories', ['story'], [name]);
  trigger('choose', { name });
}

function draw() {
  /** @type {Story.Shown} */
  const { at, playing, stories } = JSON.parse(props.value), one = stories.find(({ name }) => name === at) || stories[0];
  list.replaceChildren();
  text.replaceChildren();
  if (!one) return;
  for (const { name, title } of stories) {
    const button = add(list, 'button', '', title);
    button.type = 'button';
    if (name === one.name) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => choose(name));
  }
  window.tokendynoAddress?.title('stories', at && one.title);
  const slides = stories.filter(({ batching }) => !batching), place = slides.indexOf(one);
  window.tokendynoStory = place < 0 ? null : {
    title: one.title, claim: one.claim, chart: one.chart, place, count: slides.length, before: slides[place - 1], after: slides[place + 1], open: choose,
  };
  const said = add(text, 'div', 'td-story-words'), side = add(text, 'div', 'td-story-side');
  add(said, 'h2', '', one.title);
  one.text.forEach((words) => paragraph(said, '', words));
  const claim = add(side, 'div', 'td-claim');
  const words = add(claim, 'p', 'td-claim-said', one.claim + ' ');
  add(words, 'cite', '', one.source);
  for (const { name, title, word, remark, sentence } of one.claims) {
    const measured = add(claim, 'p', 'td-claim-found', '');
    add(measured, 'b', 'td-word ' + word.replaceAll(' ', '-'), word[0].toUpperCase() + word.slice(1) + ': ');
    const link = add(measured, 'a', '', title);
    link.href = '?' + new URLSearchParams({ view: 'claims', name });
    link.title = sentence;
    measured.append(document.createTextNode(remark ? ' (' + remark + ').' : '.'));
  }
  paragraph(claim, 'td-claim-found', one.found);
  const foot = add(side, 'div', 'td-story-foot');
  const run = add(foot, 'button', 'td-take', 'Run it here');
  run.type = 'button';
  run.addEventListener('click', () => trigger('take', { name: one.name }));
  paragraph(foot, 'td-story-here', one.here);
  const now = one.played.find(({ recording }) => recording === playing) || one.played[0];
  const recorded = paragraph(text, 'td-story-recorded', (one.batching ? '' : 'Playing: ') + now.recorded + ' ');
  if (one.batching) {
    const link = add(recorded, 'a', '', 'Open the recording on the Batching page');
    link.href = '?' + new URLSearchParams({ view: 'batching', run: 'recorded-' + now.recording });
  }
  one.played.filter((other) => other !== now).forEach(({ recording, shows }) => {
    const play = add(recorded, 'button', 'td-story-also', 'Play: ' + (shows || 'the recording of this story'));
    play.type = 'button';
    play.addEventListener('click', () => trigger('choose', { name: one.name, recording }));
  });
}
draw();
watch('value', afterPress(element, draw));
