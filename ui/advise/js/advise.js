// What should I use? Cards of the winners beside time and memory of every arm; below them what was ruled out or not tried.

import { add } from '../../components/js/dom.js';
import { showPareto } from '../../components/js/pareto.js';
import { result, showCourse, tableIn } from '../../worth/js/course.js';

const EXPLAINED = 'Rules, predicted memory and bounds rule arms out without a run. The rest is tried where a gain is expected, the best are compared in rounds, '
  + 'their quality is read, and the winner is measured once more in fresh workers. Only what was measured is ranked.';

/** @param {HTMLElement} parent @param {string} text @param {string} said */
const copied = (parent, text, said) => {
  const button = /** @type {HTMLButtonElement} */ (add(parent, 'button', 'td-advise-copy', 'Copy'));
  button.type = 'button';
  button.ariaLabel = 'Copy ' + said;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select it: this page may not copy';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
};
/** @param {HTMLElement} parent @param {Advise.AdviceCard} found */
const card = (parent, found) => {
  const box = add(parent, 'article', 'td-advise-card ' + found.label.replace(' ', '-'));
  const head = add(box, 'h3', '', found.title);
  add(head, 'small', '', found.tag);
  const figures = add(box, 'dl', 'td-advise-figures');
  for (const one of found.figures) {
    const each = add(figures, 'div', '');
    add(each, 'dd', '', one.value);
    add(each, 'dt', '', one.what);
  }
  for (const line of found.gets) add(box, 'p', '', line);
  if (found.serve) {
    const serve = add(box, 'p', 'td-advise-serve');
    add(serve, 'code', '', found.serve);
    copied(serve, found.serve, 'the command that serves it');
    if (found.serve_note) add(box, 'p', '', found.serve_note);
  }
  const script = add(box, 'details', '');
  add(script, 'summary', '', 'Script');
  copied(script, found.script, 'the script');
  const code = add(script, 'pre', '', found.script);
  code.tabIndex = 0;
  const proof = add(box, 'details', '');
  add(proof, 'summary', '', 'Certificate');
  for (const line of found.certificate) add(proof, 'p', '', line);
  if (found.run) {
    const link = /** @type {HTMLAnchorElement} */ (add(add(proof, 'p', ''), 'a', '', 'The run that measured it again'));
    link.href = '?view=compare&run=' + encodeURIComponent(found.run);
  }
};
/** @param {Advise.AdviceView} found */
const draw = (found) => {
  add(result, 'p', '', found.counts);
  const grid = add(result, 'div', 'td-advise-grid');
  const cards = add(grid, 'div', 'td-advise-cards');
  for (const one of found.cards) card(cards, one);
  if (found.pareto) showPareto(add(grid, 'div', ''), found.pareto);
  if (found.table.length) tableIn(result, 'Every arm that was measured', found.table);
  const below = add(result, 'div', 'td-advise-grid');
  for (const group of found.left) {
    if (!group.lines.length) continue;
    const part = add(below, 'div', '');
    add(part, 'h3', '', group.title);
    for (const line of group.lines) add(part, 'p', '', line);
  }
};
showCourse({ draw, begin: () => ({}), explained: EXPLAINED });
