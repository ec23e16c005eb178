// How several GPUs split a model: a row for parameters of one name. Text reaches the document through textContent only.

import { add } from '../../components/js/add.js';

function drawSharding() {
  const box = element.querySelector('.td-sharding');
  box.replaceChildren();
  box.hidden = !props.value;
  if (!props.value) return;
  const found = JSON.parse(props.value);
  box.setAttribute('aria-label', found.heading);
  const table = add(box, 'table');
  add(table, 'caption', 'td-sharding-heading', found.heading);
  const head = add(add(table, 'thead'), 'tr');
  for (const name of found.columns) add(head, 'th', '', name).scope = 'col';
  const body = add(table, 'tbody');
  for (const cells of found.rows) {
    const line = add(body, 'tr');
    cells.forEach((text, at) => {
      const cell = add(line, at ? 'td' : 'th', '', text);
      if (!at) cell.scope = 'row';
      cell.dataset.label = found.columns[at];
    });
  }
}
drawSharding();
watch('value', drawSharding);
