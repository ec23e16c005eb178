// What should I use? Cards of the winners beside time and memory of every arm; below them what was ruled out or not tried.

import { add, button } from '../../components/js/dom.js';
import { showPareto } from '../../components/js/pareto.js';
import { result, showCourse, tableIn } from '../../worth/js/course.js';

const EXPLAINED = 'Rules, predicted memory and bounds rule arms out without a run. The rest is tried where a gain is expected, the best are compared in rounds, '
  + 'their quality is read, and the winner is measured once more in fresh workers. Only what was measured is ranked.';

/** @param {HTMLElement} parent @param {string} text @param {string} said */
const copied = (parent, text, said) => {
  const copy = button('td-advise-copy', 'Copy', 'Copy ' + said, async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = 'Copied';
    } catch {
      copy.textContent = 'Select it: this page may not copy';
    }
    setTimeout(() => { copy.textContent = 'Copy'; }, 2000);
  });
  parent.append(copy);
};
/** @param {HTMLElement} parent @param {Advise.AdviceCard} winner */
const card = (parent, winner) => {
  const box = add(parent, 'article', 'td-advise-card ' + winner.label.replace(' ', '-'));
  const head = add(box, 'h3', '', winner.title);
  add(head, 'small', '', winner.tag);
  const figures = add(box, 'dl', 'td-advise-figures');
  for (const figure of winner.figures) {
    const each = add(figures, 'div', '');
    add(each, 'dd', '', figure.value);
    add(each, 'dt', '', figure.what);
  }
  for (const line of winner.gets) add(box, 'p', '', line);
  if (winner.serve) {
    const serve = add(box, 'p', 'td-advise-serve');
    add(serve, 'code', '', winner.serve);
    copied(serve, winner.serve, 'the command that serves it');
    if (winner.serve_note) add(box, 'p', '', winner.serve_note);
  }
  const script = add(box, 'details', '');
  add(script, 'summary', '', 'Script');
  copied(script, winner.script, 'the script');
  add(script, 'pre', '', winner.script).tabIndex = 0;
  const proof = add(box, 'details', '');
  add(proof, 'summary', '', 'Certificate');
  for (const line of winner.certificate) add(proof, 'p', '', line);
  if (winner.run) {
    add(add(proof, 'p'), 'a', '', 'The run that measured it again').href = '?view=compare&run=' + encodeURIComponent(winner.run);
  }
};
/** @param {Advise.AdviceView} advice */
const draw = (advice) => {
  add(result, 'p', '', advice.counts);
  const grid = add(result, 'div', 'td-advise-grid');
  const cards = add(grid, 'div', 'td-advise-cards');
  for (const winner of advice.cards) card(cards, winner);
  if (advice.pareto) showPareto(add(grid, 'div', ''), advice.pareto);
  if (advice.table.length) tableIn(result, 'Every arm that was measured', advice.table);
  const below = add(result, 'div', 'td-advise-grid');
  for (const group of advice.left) {
    if (!group.lines.length) continue;
    const part = add(below, 'div', '');
    add(part, 'h3', '', group.title);
    for (const line of group.lines) add(part, 'p', '', line);
  }
};
showCourse({ draw, begin: () => ({}), explained: EXPLAINED });
