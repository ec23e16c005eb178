// An arm in short: chips of what differs from the defaults, predicted memory, and what the rules say.

import { add, afterPress, button, focusWithin } from '../../components/js/dom.js';

const labels = { note: 'Note', fallback: '\u25b2 Fallback', blocked: '\u2715 Blocked' };
const press = (parent, className, text, label, act) => {
  const made = button(className, text, label, () => act(made));
  parent.append(made);
  return made;
};
const open = (arm, opener) => window.dispatchEvent(new CustomEvent('tokendyno-palette', { detail: { arm, opener } }));
let allAxes = false;
const unfold = (key, opener) => {
  document.querySelector('#axes-' + key).parentElement.closest('.td-card').classList.toggle('td-all-axes', allAxes);
  opener.setAttribute('aria-expanded', String(allAxes));
};
const box = element.querySelector('.td-verdicts');
const show = () => {
  const focused = focusWithin(box)?.dataset.press ?? '';
  box.replaceChildren();
  if (!props.value) return;
  /** @type {Arm.Verdicts} */
  const found = JSON.parse(props.value);
  const head = add(box, 'header');
  add(head, 'span', 'td-badge', found.arm);
  add(head, 'strong', '', found.title);
  if (found.memory) add(head, 'small', 'td-memory' + (found.share > 1 ? ' over' : ''), found.memory).title = found.parts;
  const all = press(head, 'td-form', 'All axes', '', (opener) => { allAxes = !allAxes; unfold(found.key, opener); });
  all.dataset.press = 'form';
  unfold(found.key, all);
  const chips = add(box, 'div', 'td-chips'), adding = '+ Add an optimization';
  for (const chip of found.chips) {
    const one = add(chips, 'span', 'td-chip ' + chip.level, chip.axis + ' ');
    add(one, 'b', '', chip.choice);
    one.title = chip.summary;
    const words = 'Remove ' + chip.axis + ' ' + chip.choice;
    press(one, 'td-remove', '×', words, () => trigger('fix', { choices: { [chip.name]: chip.default } })).dataset.press = chip.name;
  }
  const short = found.chips.length > 1 ? '+ Add' : adding;  // so that two choices and what may follow stand on one line
  if (found.offers) press(chips, 'td-add', short, adding, (opener) => open(found.arm, opener)).dataset.press = 'add';
  if (found.offers && found.arm !== 'A') press(chips, 'td-add', 'A and one more', '', (opener) => {
    trigger('copy', {});
    open(found.arm, opener);
  }).dataset.press = 'copy';
  if (focused) box.querySelector('[data-press="' + CSS.escape(focused) + '"]')?.focus();
  for (const line of found.gets) add(box, 'p', 'td-gets', line);
  for (const one of found.verdicts) {
    const line = add(box, 'p', 'td-verdict ' + one.level);
    add(line, 'span', '', (labels[one.level] || one.level) + ': ' + one.reason);
    if (one.fix_text) line.append(button('td-fix', one.fix_text, '', () => trigger('fix', { choices: one.fix })));
    if (one.source) {
      const source = add(line, 'details', 'td-source');
      add(source, 'summary', '', 'source');
      const link = /^https:/.test(one.source) && /^\S+$/.test(one.source);
      const where = add(source, link ? 'a' : 'span', '', one.source);
      if (link) Object.assign(where, { href: one.source, target: '_blank', rel: 'noopener noreferrer' });
    }
  }
};
show();
watch('value', afterPress(box, show));
