// A sentence, and behind it a chip for each setting that is not the default; its button puts the setting back.

import { afterPress, button, el } from './dom.js';

const text = element.querySelector('.td-line-text'), chips = element.querySelector('.td-chips');
/** @param {string[]} titles */
const putBack = (titles) => trigger('back', { titles });
const show = () => {
  /** @type {Chips.ChipLine} */
  const found = props.value ? JSON.parse(props.value) : { sentence: '', chips: [] };
  text.textContent = found.sentence;
  chips.hidden = !found.chips.length;
  chips.replaceChildren(...found.chips.map((chip) => {
    const one = el('span', 'td-chip', chip.title + ' '), words = 'Put ' + chip.title + ' back to ' + chip.default;
    one.append(el('b', '', chip.value), button('td-remove', '×', words, () => putBack([chip.title])));
    one.querySelector('button').title = words;
    return one;
  }));
  if (found.chips.length > 1) chips.append(button('td-form', 'Put all back', '', () => putBack(found.chips.map((chip) => chip.title))));
};
show();
watch('value', afterPress(chips, show));
