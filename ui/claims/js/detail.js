// Everything about one claim, below its row.

import { add } from '../../components/js/add.js';
import { claimChart } from './chart.js';

export const wordClass = (word) => word.replaceAll(' ', '-');

/** @param {HTMLElement} cell @param {Claims.ClaimView} claim */
export function drawDetail(cell, claim) {
  const box = add(cell, 'div', 'td-claim-detail');
  add(box, 'p', 'td-claim-said', claim.said);
  add(box, 'p', 'td-claim-source', claim.document + ': ' + claim.place + '.');
  if (claim.differs) add(box, 'p', 'td-claim-source', 'How it was tested: ' + claim.differs);
  if (!claim.machines.length) add(box, 'p', '', claim.sentence);
  for (const machine of claim.machines) {
    const part = add(box, 'section', 'td-claim-machine');
    const head = add(part, 'h2', '', machine.machine);
    add(head, 'span', 'td-word ' + wordClass(machine.word), machine.word);
    if (machine.remark) add(head, 'small', '', machine.remark);
    add(head, 'small', '', machine.date + ', ' + machine.versions);
    for (const figure of machine.figures) {
      const line = add(part, 'div', 'td-claim-figure');
      const text = add(line, 'p');
      add(text, 'b', '', figure.title);
      add(text, 'span', '', figure.measured);
      if (figure.claimed) add(text, 'small', figure.state, 'claimed ' + figure.claimed + ': ' + figure.standing);
      claimChart(line, figure);
    }
    if (machine.device === 'cpu' && claim.about === 'gpu') {
      add(part, 'p', 'td-claim-source', 'Measured on a CPU: it decides nothing about GPUs.');
    }
    for (const doubt of machine.doubts) add(part, 'p', 'td-claim-doubt', 'Not as planned: ' + doubt);
  }
  for (const [device, lines] of Object.entries(claim.commands)) {
    const list = add(box, 'details', 'td-claim-commands');
    add(list, 'summary', '', 'Commands on ' + (device === 'cuda' ? 'a GPU' : 'a CPU'));
    add(list, 'pre', '', ['tokendyno claims ' + claim.name + ' --run', ...lines].join('\n'));
  }
}
