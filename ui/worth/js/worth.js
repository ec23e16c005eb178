// What each choice is worth: a waterfall for each figure as bars beside their numbers, and every arm by time and memory.

import { add, el, scrolled, tableBody, tableHead, tableRow } from '../../components/js/dom.js';
import { showPareto } from '../../components/js/pareto.js';
import { result, showCourse } from './course.js';

const EXPLAINED = 'For arms that differ in several choices: each alone, all but one, and one after the other, for latency, memory and quality.';

/** @param {Worth.Bar | null} figure */
const bar = (figure) => {
  if (!figure) return el('span', 'td-worth-unknown', '\u2013');
  const cell = document.createDocumentFragment();
  const track = add(cell, 'span', 'td-worth-track');
  const [left, right] = [figure.begin, figure.end].sort((a, b) => a - b);
  const piece = add(track, 'i', 'td-worth-bar' + (figure.better === 'yes' ? ' better' : figure.end === figure.begin ? ' none' : ''));
  piece.style.left = 100 * left + '%';
  piece.style.width = 100 * (right - left) + '%';
  if (figure.low !== null) {
    const whisker = add(track, 'i', 'td-worth-whisker');
    whisker.classList.toggle('td-cut-low', figure.low === 0);
    whisker.classList.toggle('td-cut-high', figure.high === 1);
    whisker.style.left = 100 * figure.low + '%';
    whisker.style.width = 100 * (figure.high - figure.low) + '%';
  }
  const said = add(cell, 'span', 'td-worth-number' + (figure.better === 'yes' ? ' better' : ''), figure.text);
  if (figure.interval) add(said, 'small', '', figure.interval);
  return cell;
};
/** @param {Worth.WorthView} view */
const draw = (view) => {
  for (const { title, what, rows } of view.groups) {
    const caption = el('caption', '', title), body = tableBody(rows.map((row) => tableRow([row.title, ...row.remarks.map((remark) => el('small', '', remark))], row.bars.map(bar))));
    add(caption, 'small', '', what);
    result.append(scrolled('td-worth-group', title, [caption, tableHead(['Step', ...view.figures]), body]).box);
  }
  add(result, 'p', 'td-worth-note', view.note);
  if (view.pareto) showPareto(result, view.pareto);
};
showCourse({ draw, begin: () => ({}), explained: EXPLAINED });
