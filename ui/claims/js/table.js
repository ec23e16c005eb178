// The table of claims: a row each, and below the chosen row everything about it.

import { add } from '../../components/js/add.js';
import { drawDetail, wordClass } from './detail.js';

const COLUMNS = ['Claim', 'Claimed', 'Measured', 'Verdict'];

/**
 * @param {HTMLElement} box @param {Claims.ClaimsDocument} document_ @param {string} wanted @param {string} chosen
 * @param {(name: string) => void} choose
 */
export function drawClaims(box, document_, wanted, chosen, choose) {
  box.replaceChildren();
  const table = add(box, 'table');
  add(table, 'caption', 'td-hidden', 'Claims, what was measured, and verdicts');
  const head = add(add(table, 'thead'), 'tr');
  for (const name of COLUMNS) add(head, 'th', '', name).scope = 'col';
  let family = '', body = null;
  for (const claim of document_.claims) {
    if (wanted && claim.word !== wanted) continue;
    if (claim.family !== family) {
      family = claim.family;
      body = add(table, 'tbody');
      const title = add(add(body, 'tr', 'td-claim-family'), 'th', '', claim.family_title);
      title.colSpan = COLUMNS.length;
      title.scope = 'rowgroup';
    }
    const row = add(body, 'tr', 'td-claim-row');
    const first = add(row, 'th');
    first.scope = 'row';
    const button = add(first, 'button', 'td-claim-open', claim.title);
    const open = claim.name === chosen;
    button.type = 'button';
    button.dataset.name = claim.name;
    button.setAttribute('aria-expanded', String(open));
    button.addEventListener('click', () => choose(claim.name));
    for (const [label, text] of [['Claimed', claim.claimed], ['Measured', claim.measured]]) {
      add(row, 'td', '', text || '\u2013').dataset.label = label;
    }
    const last = add(row, 'td');
    add(last, 'span', 'td-word ' + wordClass(claim.word), claim.word);
    if (claim.remark) add(last, 'small', 'td-remark', claim.remark);
    if (open) {
      const cell = add(add(body, 'tr', 'td-claim-more'), 'td');
      cell.colSpan = COLUMNS.length;
      drawDetail(cell, claim);
    }
  }
}
