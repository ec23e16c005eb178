// What each choice is worth: a waterfall for each figure as bars beside their numbers, and every arm by time and memory.

import { add, el, scrolled, tableBody, tableHead, tableRow } from '../../components/js/dom.js';
import { showPareto } from '../../components/js/pareto.js';
import { result, showCourse } from './course.js';

const EXPLAINED = 'For arms that differ in several choices: each alone, all but one, and one after the other, for latency, memory and quality.';

/** @param {Worth.Bar | null} found */
const bar = (found) => {
  if (!found) return el('span', 'td-worth-unknown', '\u2013');
  const cell = document.createDocumentFragment();
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
  return cell;
};
/** @param {Worth.WorthView} found */
const draw = (found) => {
  for (const { title, what, rows } of found.groups) {
    const caption = el('caption', '', title), body = tableBody(rows.map((row) => tableRow([row.title, ...row.remarks.map((remark) => el('small', '', remark))], row.bars.map(bar))));
    add(caption, 'small', '', what);
    result.append(scrolled('td-worth-group', title, [caption, tableHead(['Step', ...found.figures]), body]).box);
  }
  add(result, 'p', 'td-worth-note', found.note);
  if (found.pareto) showPareto(result, found.pareto);
};
showCourse({ draw, begin: () => ({}), explained: EXPLAINED });
