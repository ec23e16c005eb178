// A sentence, and behind it a chip for each setting that is not the default; its button puts the setting back.

import { afterPress, button, el } from './dom.js';

const text = element.querySelector('.td-line-text'), chips = element.querySelector('.td-chips');
/** @param {string[]} titles */
const putBack = (titles) => trigger('back', { titles });
const show = () => {
  /** @type {Chips.ChipLine} */
  const line = props.value ? JSON.parse(props.value) : { sentence: '', chips: [] };
  text.textContent = line.sentence;
  chips.hidden = !line.chips.length;
  chips.replaceChildren(...line.chips.map((chip) => {
    const node = el('span', 'td-chip', chip.title + ' '), words = 'Put ' + chip.title + ' back to ' + chip.default;
    node.append(el('b', '', chip.value), button('td-remove', '×', words, () => putBack([chip.title])));
    node.querySelector('button').title = words;
    return node;
  }));
  if (line.chips.length > 1) chips.append(button('td-form', 'Put all back', '', () => putBack(line.chips.map((chip) => chip.title))));
};
show();
watch('value', afterPress(chips, show));
