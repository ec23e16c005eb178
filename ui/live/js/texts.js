// The generated texts. While a text streams only its tail is kept in the document, since every token would lay out a
// pane of 100,000 characters again. At the end each is written in full, with the first difference of A and B marked.

import { add, count, el, setText } from '../../components/js/dom.js';
import { firstDifference } from './columns.js';
import { RACE_TAIL } from './race.js';

const MAX_TAIL = 5000, KEPT_TAIL = 3000;

// Write a text in full; what follows its first difference (-1: none) is underlined.
/** @param {HTMLElement} body @param {string} text @param {number} difference */
export function writeText(body, text, difference) {
  body.replaceChildren(difference < 0 ? text : text.slice(0, difference));
  if (difference < 0) return;
  const mark = el('mark', 'td-difference', '\u2260');
  mark.title = 'The texts differ from here on.';
  body.append(mark, el('span', 'td-divergent', text.slice(difference)));
}

/** A box for a text, which moves in it. Returns the part that holds the text. @param {HTMLElement} parent @param {string} label */
export function textPane(parent, label) {
  const box = el('div', 'td-scroll'), body = add(box, 'div', 'td-body');
  Object.assign(box, { tabIndex: 0, role: 'region', ariaLabel: label });
  parent.append(box);
  return body;
}

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
      const body = textPane(add(box, 'section', 'td-text arm-' + arm.name.toLowerCase()), 'Text of arm ' + arm.name);
      body.append(document.createTextNode(''));
      return { body };
    });
    note = add(box, 'p', 'td-text-comparison', '');
  }

  /** @param {number} i @param {string} added */
  function append(i, added) {
    if (!added || !panes[i]) return;
    const tail = panes[i].body.firstChild;
    tail.appendData(added);
    if (tail.length > MAX_TAIL) tail.deleteData(0, tail.length - KEPT_TAIL);
  }

  /** @param {number} i @param {string} text @param {number} difference */
  function writeAll(i, text, difference) {
    if (!panes[i]) return;
    written[i] = { text, difference };
    writeText(panes[i].body, text, difference);
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
    panes[i].body.replaceChildren(written[i].text.slice(0, characters).slice(-RACE_TAIL));
  }

  function whole() {
    panes.forEach((_, i) => { if (written[i]) writeAll(i, written[i].text, written[i].difference); });
    reveal();
  }

  return { build, append, finish, upTo, whole };
}
