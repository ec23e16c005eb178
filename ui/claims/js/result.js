// The Claims page. Text reaches the document through textContent only.

import { focusWithin } from '../../components/js/focus.js';
import { onTheme } from '../../components/js/theme.js';
import { add } from '../../components/js/add.js';
import { wordClass } from './detail.js';
import { drawClaims } from './table.js';

const rows = element.querySelector('.td-claims-rows'), counts = element.querySelector('.td-claims-counts');
let wanted = '', chosen = null;

function draw() {
  if (!props.value) return;
  /** @type {Claims.ClaimsDocument} */
  const found = JSON.parse(props.value);
  const opens = chosen === null;
  if (opens) chosen = new URL(location.href).searchParams.get('name') || '';
  const focused = focusWithin(element)?.dataset ?? {};
  const name = focused.name, word = focused.word;
  counts.replaceChildren();
  /** @type {[string, number][]} */
  const words = [['', found.claims.length], ...Object.entries(found.counts)];
  for (const [one, count] of words) {
    const button = add(counts, 'button', one && wordClass(one), count + ' ' + (one || 'claims'));
    button.type = 'button';
    button.dataset.word = one;
    button.setAttribute('aria-pressed', String(one === wanted));
    button.addEventListener('click', () => { wanted = one; draw(); });
  }
  drawClaims(rows, found, wanted, chosen, (next) => {
    chosen = next === chosen ? '' : next;
    window.tokendynoAddress?.tell('claims', ['name'], [chosen]);
    draw();
  });
  const again = name !== undefined ? [...rows.querySelectorAll('button')].find((one) => one.dataset.name === name)
    : word !== undefined ? [...counts.querySelectorAll('button')].find((one) => one.dataset.word === word) : null;
  again?.focus();
  if (opens && chosen) rows.querySelector('[data-name="' + CSS.escape(chosen) + '"]')?.scrollIntoView({ block: 'center' });
}
onTheme(draw);
draw();
watch('value', draw);
