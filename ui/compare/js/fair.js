// In what the arms differ: as chosen, or also in what nobody chose, with the button that sets this the same.

import { add, afterPress, button } from '../../components/js/dom.js';

const box = element.querySelector('.td-fair');
const show = () => {
  box.replaceChildren();
  if (!props.value) return;
  /** @type {Fair.Fairness} */
  const found = JSON.parse(props.value);
  box.className = 'td-fair ' + found.state;
  if (found.badge) add(box, 'b', '', found.badge);
  add(box, 'span', '', found.sentence);
  if (found.fix_text) box.append(button('td-fix', found.fix_text, '', () => trigger('fix', { fix: found.fix })));
  if (found.same) add(box, 'small', '', found.same);
};
show();
watch('value', afterPress(box, show));
