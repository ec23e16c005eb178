// The evidence: what was requested, planned and found, with the proof; one row for each axis and arm.
const EVIDENCE_LABELS = {
  verified: '\u2713 verified', partial: '\u25D0 partial', no_effect: '\u25CB no effect', fallback: '\u25B2 fallback',
  failed: '\u2715 failed', off: 'off', not_applicable: 'not applicable',
};

function makeLedger(box) {
  let shown = '';

  function take(arms) {
    const rows = arms.flatMap(arm => arm.ledger.map(row => ({ arm: arm.name, ...row })));
    const now = JSON.stringify(rows);
    if (now === shown) return;
    shown = now;
    box.replaceChildren();
    if (!rows.length) {
      box.append(el('p', 'td-empty', 'Proof that each choice took effect appears here once an arm has finished.'));
      return;
    }
    const table = el('table', ''), top = el('tr', ''), head = el('thead', ''), body = el('tbody', '');
    const told = arms.filter(arm => arm.verified).map(arm => `${arm.name}: ${arm.verified}`).join('; ');
    table.append(el('caption', '', 'Evidence'));
    table.lastChild.append(el('small', '', told));
    for (const title of ['Axis', 'Arm', 'Requested', 'Planned', 'Effective', 'Status', 'Proof']) {
      const cell = el('th', '', title);
      cell.scope = 'col';
      top.append(cell);
    }
    head.append(top);
    const axes = [...new Set(rows.map(row => row.axis))];
    for (const axis of axes) {
      const group = rows.filter(row => row.axis === axis);
      group.forEach((row, i) => body.append(line(row, i ? 0 : group.length)));
    }
    table.append(head, body);
    box.append(table);
  }

  function line(row, span) {
    const tr = el('tr', row.status);
    if (span) {
      const axis = el('th', '', row.axis);
      axis.scope = 'rowgroup';
      axis.rowSpan = span;
      tr.append(axis);
    }
    tr.append(el('td', 'arm-' + row.arm.toLowerCase()));
    tr.lastChild.append(el('span', 'td-arm', row.arm));
    for (const key of ['requested', 'planned', 'effective']) tr.append(el('td', '', row[key]));
    tr.append(el('td', 'td-status', EVIDENCE_LABELS[row.status] || row.status));
    const proof = el('td', 'td-proof', row.proof);
    if (row.reason) proof.append(el('small', '', row.reason));
    tr.append(proof);
    return tr;
  }

  function clear() { shown = ''; box.replaceChildren(); }
  return { take, clear };
}
