// How several GPUs split a model: a row for parameters of one name.

import { add, tableBody, tableHead, tableRow } from '../../components/js/dom.js';

function drawSharding() {
  const box = element.querySelector('.td-sharding');
  box.replaceChildren();
  box.hidden = !props.value;
  if (!props.value) return;
  const { heading, columns, rows } = JSON.parse(props.value), table = add(box, 'table');
  box.setAttribute('aria-label', heading);
  add(table, 'caption', 'td-sharding-heading', heading);
  table.append(tableHead(columns), tableBody(rows.map(([name, ...cells]) => tableRow(name, cells))));
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, at) => { cell.dataset.label = columns[at]; });
}
drawSharding();
watch('value', drawSharding);
