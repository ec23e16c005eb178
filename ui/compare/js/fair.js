// In what the arms differ: as chosen, or also in what nobody chose, with the button that sets this the same.

import { add, afterPress, button } from '../../components/js/dom.js';

const box = element.querySelector('.td-fair');
const show = () => {
  box.replaceChildren();
  if (!props.value) return;
  /** @type {Fair.Fairness} */
  const fairness = JSON.parse(props.value);
  box.className = 'td-fair ' + fairness.state;
  if (fairness.badge) add(box, 'b', '', fairness.badge);
  add(box, 'span', '', fairness.sentence);
  if (fairness.fix_text) box.append(button('td-fix', fairness.fix_text, '', () => trigger('fix', { fix: fairness.fix })));
  if (fairness.same) add(box, 'small', '', fairness.same);
};
show();
watch('value', afterPress(box, show));
