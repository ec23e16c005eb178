// A sentence, and behind it a chip for each setting that is not the default; its button puts the setting back.

import { add } from './add.js';
import { afterPress } from './press.js';

const text = element.querySelector('.td-line-text'), chips = element.querySelector('.td-chips');
/** @param {string[]} titles */
const putBack = (titles) => trigger('back', { titles });
const show = () => {
  /** @type {Chips.ChipLine} */
  const found = props.value ? JSON.parse(props.value) : { sentence: '', chips: [] };
  text.textContent = found.sentence;
  chips.hidden = !found.chips.length;
  chips.replaceChildren(...found.chips.map((chip) => {
    const one = add(document.createDocumentFragment(), 'span', 'td-chip', chip.title + ' ');
    add(one, 'b', '', chip.value);
    const button = add(one, 'button', 'td-remove', '×');
    button.type = 'button';
    button.title = 'Put ' + chip.title + ' back to ' + chip.default;
    button.setAttribute('aria-label', button.title);
    button.addEventListener('click', () => putBack([chip.title]));
    return one;
  }));
  if (found.chips.length < 2) return;
  const all = add(chips, 'button', 'td-form', 'Put all back');
  all.type = 'button';
  all.addEventListener('click', () => putBack(found.chips.map((chip) => chip.title)));
};
show();
watch('value', afterPress(chips, show));
