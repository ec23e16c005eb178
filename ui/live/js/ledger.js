// The ledger: what was requested, planned and found, with the proof. First the line that sums it up, then the axes
// that differ between the arms or need a look; a button shows all. Arms with equal rows share one.

import { add, badge, button, el, redrawn, setText, tableHead } from '../../components/js/dom.js';
import { titled } from './terms.js';

const EVIDENCE_LABELS = {
  verified: '\u2713 verified', partial: '\u25D0 partial', no_effect: '\u25CB no effect', fallback: '\u25B2 fallback',
  failed: '\u2715 failed', unchecked: '\u25CC unchecked', off: 'off', not_applicable: 'not applicable',
};

/** @param {HTMLElement} box @param {() => string} codeFile address of the generated code of the run; '' where none is */
export function makeLedger(box, codeFile) {
  let all = false;

  const { take, clear } = redrawn(box, (/** @type {Pick<Live.ArmHead, 'name' | 'ledger' | 'code'>[]} */ arms, /** @type {Live.LedgerDigest | null} */ digest) => {
    if (!digest) {
      add(box, 'p', 'td-empty', 'Each arm that finishes shows here the proof that its choices took effect.');
      return;
    }
    const table = add(box, 'table'), caption = titled('caption', '', 'Ledger');
    add(caption, 'small', '', digest.line);
    const head = tableHead(['Axis', 'Arm', 'Requested', 'Planned', 'Effective', 'Status', 'Proof'].map(title => titled('span', '', title)));
    table.append(caption, head);
    const body = add(table, 'tbody');
    // on a narrow screen CSS makes blocks of its rows, which are a table all the same
    for (const cell of head.querySelectorAll('th')) cell.role = 'columnheader';
    head.role = body.role = 'rowgroup';
    head.rows[0].role = 'row';
    const axes = [...new Set(arms.flatMap(arm => arm.ledger.map(row => row.axis)))];
    for (const axis of axes) {
      const rows = grouped(arms, axis).map((row, i, group) => line(row, digest.titles[axis] || axis, i ? 0 : group.length));
      const generated = axis === 'compile' && codeFile() ? arms.filter(arm => arm.code) : [];
      if (generated.length) rows.push(codeOf(generated.map(arm => arm.name + ': ' + arm.code).join('; ')));
      for (const row of rows) row.classList.toggle('td-quiet', !digest.shown.includes(axis));
      body.append(...rows);
    }
    const more = button('td-all', '', '', () => { all = !all; fold(table, more, axes.length, digest); });
    box.append(more);
    fold(table, more, axes.length, digest);
  });

  function fold(table, more, axes, digest) {
    const none = !all && !digest.shown.length;
    table.classList.toggle('td-folded', !all);
    table.classList.toggle('td-none', none);
    table.role = none ? 'presentation' : 'table'; // without a row to show, only its line is left
    table.querySelector('caption').role = none ? null : 'caption'; // a table of roles may hold its button in nothing else
    more.hidden = digest.shown.length === axes;
    setText(more, all ? 'Only what differs or is not verified' : 'All ' + axes + ' axes with their proof');
    more.setAttribute('aria-expanded', String(all));
  }

  // The rows of an axis; equal ones are one, of several arms.
  function grouped(arms, axis) {
    const rows = new Map();
    for (const arm of arms) for (const row of arm.ledger.filter(candidate => candidate.axis === axis)) {
      const key = JSON.stringify(row);
      if (rows.has(key)) rows.get(key).arms.push(arm.name);
      else rows.set(key, { ...row, arms: [arm.name] });
    }
    return [...rows.values()];
  }

  function line(row, title, span) {
    const tr = el('tr', row.status);
    tr.role = 'row';
    if (span) {
      Object.assign(add(tr, 'th', '', title), { scope: 'rowgroup', rowSpan: span, role: 'rowheader' });
    }
    const who = add(tr, 'td', 'td-who');
    for (const arm of row.arms) add(who, 'span', 'arm-' + arm.toLowerCase()).append(badge(arm));
    for (const key of ['requested', 'planned', 'effective']) add(tr, 'td', 'td-choice', row[key]).dataset.title = key;
    add(tr, 'td', 'td-status', EVIDENCE_LABELS[row.status] || row.status);
    const proof = add(tr, 'td', 'td-proof', row.proof);
    if (row.reason) add(proof, 'small', '', row.reason);
    for (const cell of tr.querySelectorAll('td')) cell.role = 'cell';
    return tr;
  }

  /** Fetched when it is opened: it may be long. @param {string} words */
  function codeOf(words) {
    const tr = el('tr', 'td-code-kept'), cell = add(tr, 'td'), part = add(cell, 'details');
    add(part, 'summary', '', 'Generated code: ' + words);
    const link = add(part, 'a', '', 'Save as a file'), text = add(part, 'pre', '', '');
    link.href = codeFile();
    link.download = '';
    text.tabIndex = 0;
    part.addEventListener('toggle', async () => {
      if (!part.open || text.textContent) return;
      const reply = await fetch(codeFile()).catch(() => null);
      text.textContent = reply ? await reply.text() : 'The code could not be fetched. Open this part again.';
    });
    tr.role = 'row';
    cell.role = 'cell';
    cell.colSpan = 7;
    return tr;
  }

  return {
    /** @param {Pick<Live.ArmHead, 'name' | 'ledger' | 'code'>[]} arms @param {Live.LedgerDigest | null} digest */
    take: (arms, digest) => take(arms.map(({ name, ledger, code }) => ({ name, ledger, code })), digest),
    clear() { all = false; clear(); },
  };
}
