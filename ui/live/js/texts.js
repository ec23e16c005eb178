// The generated texts. While a text streams only its tail is kept in the document, since every token would lay out a
// pane of 100,000 characters again. At the end each is written in full, with the first difference of A and B marked.

import { count, el, setText } from './dom.js';
import { firstDifference } from './series.js';
import { RACE_TAIL } from './race.js';

const MAX_TAIL = 5000, KEPT_TAIL = 3000;

/** @param {HTMLElement} box */
export function makeTexts(box) {
  let panes = [], note = null, written = [];

  /** @param {Pick<Live.ArmHead, 'name'>[]} arms @param {Live.Head['unit']} unit */
  function build(arms, unit) {
    box.replaceChildren();
    written = [];
    if (unit === 'forward') {
      panes = [];
      box.append(el('p', 'td-empty', 'An encoder generates no text: its forward passes are timed.'));
      return;
    }
    panes = arms.map(arm => {
      const section = el('section', 'td-text arm-' + arm.name.toLowerCase());
      const scroll = el('div', 'td-scroll');
      scroll.tabIndex = 0;
      scroll.setAttribute('role', 'region');
      scroll.setAttribute('aria-label', 'Text of arm ' + arm.name);
      const body = el('div', 'td-body');
      body.append(document.createTextNode(''));
      scroll.append(body);
      section.append(scroll);
      box.append(section);
      return { body };
    });
    note = el('p', 'td-text-comparison', '');
    box.append(note);
  }

  /** @param {number} i @param {string} added */
  function append(i, added) {
    if (!added || !panes[i]) return;
    const tail = panes[i].body.firstChild;
    tail.appendData(added);
    if (tail.length > MAX_TAIL) tail.deleteData(0, tail.length - KEPT_TAIL);
  }

  // Write a text in full; what follows its first difference (-1: none) is underlined.
  /** @param {number} i @param {string} text @param {number} difference */
  function writeAll(i, text, difference) {
    if (!panes[i]) return;
    written[i] = { text, difference };
    const body = panes[i].body;
    body.replaceChildren();
    if (difference < 0) { body.append(document.createTextNode(text)); return; }
    const rest = el('span', 'td-divergent');
    const mark = el('mark', 'td-difference', '\u2260');
    mark.title = 'The texts differ from here on.';
    rest.append(document.createTextNode(text.slice(difference)));
    body.append(document.createTextNode(text.slice(0, difference)), mark, rest);
  }

  // Both texts at their first difference, which a long text would leave out of sight.
  function reveal() {
    for (const { body } of panes) {
      const scroll = body.parentElement, mark = body.querySelector('.td-difference');
      if (mark) scroll.scrollTop += mark.getBoundingClientRect().top - scroll.getBoundingClientRect().top - scroll.clientHeight / 3;
    }
  }

  // All texts are complete: write and compare them. `said`: from which token they differ and why, in a sentence.
  /** @param {Pick<Live.Series, 'text'>[]} series @param {string} said */
  function finish(series, said) {
    if (!panes.length) return;
    const all = series.map(arm => arm.text), [a, b] = all;
    const at = all.length < 2 ? -1 : firstDifference(a, b);
    all.forEach((text, i) => {
      writeAll(i, text, at);
      panes[i].body.closest('.td-text').classList.toggle('td-unwritten', !text);
    });
    reveal();
    if (all.length < 2) return;
    const shorter = Math.min(a.length, b.length), same = at < 0 && a.length === b.length;
    if (!shorter) setText(note, '');
    else if (same) setText(note, 'The texts are identical.');
    else if (at < 0) setText(note, 'The first ' + count(shorter) + ' characters are identical; one text is longer.');
    else if (said?.startsWith('The texts differ')) setText(note, 'Marked \u2260: ' + said); // one line has room for it
    else setText(note, 'The texts first differ at character ' + count(at + 1) + ', marked \u2260. ' + (said || ''));
  }

  // A part of a text, for the race: its end, since a long text would be laid out again at every frame.
  /** @param {number} i @param {number} characters */
  function upTo(i, characters) {
    if (!panes[i] || !written[i]) return;
    const shown = written[i].text.slice(0, characters), tail = document.createTextNode(shown.slice(-RACE_TAIL));
    panes[i].body.replaceChildren(tail);
  }

  function whole() {
    panes.forEach((_, i) => { if (written[i]) writeAll(i, written[i].text, written[i].difference); });
    reveal();
  }

  return { build, append, finish, upTo, whole };
}
