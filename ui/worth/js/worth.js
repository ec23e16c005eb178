// What each choice is worth: a waterfall for each figure as bars beside their numbers, and every arm by time and memory.

import { showPareto } from '../../components/js/pareto.js';
import { add } from '../../components/js/add.js';
import { result, showCourse } from './course.js';

const EXPLAINED = 'For arms that differ in several choices: each alone, all but one, and one after the other, for latency, memory and quality.';

/** @param {HTMLElement} cell @param {Worth.Bar | null} found */
const bar = (cell, found) => {
  if (!found) { add(cell, 'span', 'td-worth-unknown', '\u2013'); return; }
  const track = add(cell, 'span', 'td-worth-track');
  const [left, right] = [found.begin, found.end].sort((a, b) => a - b);
  const piece = add(track, 'i', 'td-worth-bar' + (found.better === 'yes' ? ' better' : found.end === found.begin ? ' none' : ''));
  piece.style.left = 100 * left + '%';
  piece.style.width = 100 * (right - left) + '%';
  if (found.low !== null) {
    const whisker = add(track, 'i', 'td-worth-whisker');
    whisker.style.left = 100 * found.low + '%';
    whisker.style.width = 100 * (found.high - found.low) + '%';
  }
  const said = add(cell, 'span', 'td-worth-number' + (found.better === 'yes' ? ' better' : ''), found.text);
  if (found.interval) add(said, 'small', '', found.interval);
};
/** @param {HTMLElement} box @param {string[]} figures @param {Worth.Group} group */
const table = (box, figures, group) => {
  const whole = add(box, 'table', ''), caption = add(whole, 'caption', '', group.title);
  add(caption, 'small', '', group.what);
  const top = add(add(whole, 'thead', ''), 'tr', '');
  for (const title of ['Step', ...figures]) add(top, 'th', '', title).scope = 'col';
  const body = add(whole, 'tbody', '');
  group.rows.forEach((row) => {
    const tr = add(body, 'tr', ''), name = add(tr, 'th', '', row.title);
    name.scope = 'row';
    for (const remark of row.remarks) add(name, 'small', '', remark);
    for (const one of row.bars) bar(add(tr, 'td', ''), one);
  });
};
/** @param {Worth.WorthView} found */
const draw = (found) => {
  for (const group of found.groups) {
    const scroll = add(result, 'div', 'td-worth-group');
    Object.assign(scroll, { tabIndex: 0, ariaLabel: group.title });
    scroll.setAttribute('role', 'region');
    table(scroll, found.figures, group);
  }
  add(result, 'p', 'td-worth-note', found.note);
  if (found.pareto) showPareto(result, found.pareto);
};
showCourse({ draw, begin: () => ({}), explained: EXPLAINED });
