// An arm in short: chips of what differs from the defaults, predicted memory, and what the rules say.

import { add, afterPress, button, focusWithin } from '../../components/js/dom.js';

const labels = { note: 'Note', fallback: '\u25b2 Fallback', blocked: '\u2715 Blocked' };
const press = (parent, className, text, label, act) => {
  const node = button(className, text, label, () => act(node));
  parent.append(node);
  return node;
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
  const verdicts = JSON.parse(props.value);
  if (verdicts.link) window.tokendynoAddress?.arm(verdicts.key, verdicts.link);
  const head = add(box, 'header');
  add(head, 'span', 'td-badge', verdicts.arm);
  add(head, 'strong', '', verdicts.title);
  if (verdicts.memory) add(head, 'small', 'td-memory' + (verdicts.share > 1 ? ' over' : ''), verdicts.memory).title = verdicts.parts;
  const all = press(head, 'td-form', 'All axes', '', (opener) => { allAxes = !allAxes; unfold(verdicts.key, opener); });
  all.dataset.press = 'form';
  unfold(verdicts.key, all);
  const chips = add(box, 'div', 'td-chips'), adding = '+ Add an optimization';
  for (const chip of verdicts.chips) {
    const node = add(chips, 'span', 'td-chip ' + chip.level, chip.axis + ' ');
    add(node, 'b', '', chip.choice);
    node.title = chip.summary;
    const words = 'Remove ' + chip.axis + ' ' + chip.choice;
    press(node, 'td-remove', '×', words, () => trigger('fix', { choices: { [chip.name]: chip.default } })).dataset.press = chip.name;
  }
  const short = verdicts.chips.length > 1 ? '+ Add' : adding;  // so that two choices and what may follow stand on one line
  if (verdicts.offers) press(chips, 'td-add', short, adding, (opener) => open(verdicts.arm, opener)).dataset.press = 'add';
  if (verdicts.offers && verdicts.arm !== 'A') press(chips, 'td-add', 'A and one more', '', (opener) => {
    trigger('copy', {});
    open(verdicts.arm, opener);
  }).dataset.press = 'copy';
  if (focused) box.querySelector('[data-press="' + CSS.escape(focused) + '"]')?.focus();
  for (const line of verdicts.gets) add(box, 'p', 'td-gets', line);
  for (const verdict of verdicts.verdicts) {
    const line = add(box, 'p', 'td-verdict ' + verdict.level);
    add(line, 'span', '', (labels[verdict.level] || verdict.level) + ': ' + verdict.reason);
    if (verdict.fix_text) line.append(button('td-fix', verdict.fix_text, '', () => trigger('fix', { choices: verdict.fix })));
    if (verdict.source) {
      const source = add(line, 'details', 'td-source');
      add(source, 'summary', '', 'source');
      const link = /^https:/.test(verdict.source) && /^\S+$/.test(verdict.source);
      const where = add(source, link ? 'a' : 'span', '', verdict.source);
      if (link) Object.assign(where, { href: verdict.source, target: '_blank', rel: 'noopener noreferrer' });
    }
  }
};
show();
watch('value', afterPress(box, show));
