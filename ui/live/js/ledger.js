// The ledger: what was requested, planned and found, with the proof. First the line that sums it up, then the axes
// that differ between the arms or need a look; a button shows all. Arms with equal rows share one.

import { el, setText } from './dom.js';
import { titled } from './terms.js';

const EVIDENCE_LABELS = {
  verified: '\u2713 verified', partial: '\u25D0 partial', no_effect: '\u25CB no effect', fallback: '\u25B2 fallback',
  failed: '\u2715 failed', unchecked: '\u25CC unchecked', off: 'off', not_applicable: 'not applicable',
};

/** @param {HTMLElement} box @param {() => string} codeFile address of the generated code of the run; '' where none is */
export function makeLedger(box, codeFile) {
  let shown = '', all = false;

  /** @param {Pick<Live.ArmHead, 'name' | 'ledger' | 'code'>[]} arms @param {Live.LedgerDigest | null} digest */
  function take(arms, digest) {
    const now = JSON.stringify([arms.map(arm => [arm.ledger, arm.code]), digest]);
    if (now === shown) return;
    shown = now;
    box.replaceChildren();
    if (!digest) {
      box.append(el('p', 'td-empty', 'Each arm that finishes shows here the proof that its choices took effect.'));
      return;
    }
    const table = el('table', ''), top = el('tr', ''), head = el('thead', ''), body = el('tbody', '');
    const caption = titled('caption', '', 'Ledger');
    caption.append(el('small', '', digest.line));
    table.append(caption);
    for (const title of ['Axis', 'Arm', 'Requested', 'Planned', 'Effective', 'Status', 'Proof']) {
      const cell = titled('th', '', title);
      cell.scope = 'col';
      cell.role = 'columnheader';
      top.append(cell);
    }
    head.append(top);
    // on a narrow screen CSS makes blocks of its rows, which are a table all the same
    for (const [part, role] of /** @type {[HTMLElement, string][]} */ ([[head, 'rowgroup'], [body, 'rowgroup'], [top, 'row']])) part.role = role;
    const axes = [...new Set(arms.flatMap(arm => arm.ledger.map(row => row.axis)))];
    for (const axis of axes) {
      const group = grouped(arms, axis);
      group.forEach((row, i) => {
        const tr = line(row, digest.titles[axis] || axis, i ? 0 : group.length);
        tr.classList.toggle('td-quiet', !digest.shown.includes(axis));
        body.append(tr);
      });
      const kept = axis === 'compile' && codeFile() ? arms.filter(arm => arm.code) : [];
      if (kept.length) {
        body.append(codeOf(kept.map(arm => arm.name + ': ' + arm.code).join('; ')));
        body.lastElementChild.classList.toggle('td-quiet', !digest.shown.includes(axis));
      }
    }
    const button = el('button', 'td-all', '');
    button.type = 'button';
    button.addEventListener('click', () => { all = !all; fold(table, button, axes.length, digest); });
    table.append(head, body);
    box.append(table, button);
    fold(table, button, axes.length, digest);
  }

  function fold(table, button, axes, digest) {
    const none = !all && !digest.shown.length;
    table.classList.toggle('td-folded', !all);
    table.classList.toggle('td-none', none);
    table.role = none ? 'presentation' : 'table'; // without a row to show, only its line is left
    table.querySelector('caption').role = none ? null : 'caption'; // a table of roles may hold its button in nothing else
    button.hidden = digest.shown.length === axes;
    setText(button, all ? 'Only what differs or is not verified' : 'All ' + axes + ' axes with their proof');
    button.setAttribute('aria-expanded', String(all));
  }

  // The rows of an axis; equal ones are one, of several arms.
  function grouped(arms, axis) {
    const rows = new Map();
    for (const arm of arms) for (const row of arm.ledger.filter(one => one.axis === axis)) {
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
      const axis = el('th', '', title);
      axis.scope = 'rowgroup';
      axis.rowSpan = span;
      axis.role = 'rowheader';
      tr.append(axis);
    }
    const who = el('td', 'td-who');
    for (const arm of row.arms) {
      const one = el('span', 'arm-' + arm.toLowerCase());
      one.append(el('span', 'td-arm', arm));
      who.append(one);
    }
    tr.append(who);
    for (const key of ['requested', 'planned', 'effective']) {
      const cell = el('td', 'td-choice', row[key]);
      cell.dataset.title = key;
      tr.append(cell);
    }
    tr.append(el('td', 'td-status', EVIDENCE_LABELS[row.status] || row.status));
    const proof = el('td', 'td-proof', row.proof);
    if (row.reason) proof.append(el('small', '', row.reason));
    tr.append(proof);
    for (const cell of tr.querySelectorAll('td')) cell.role = 'cell';
    return tr;
  }

  // Fetched when it is opened: it may be long.
  /** @param {string} words */
  function codeOf(words) {
    const tr = el('tr', 'td-code-kept'), cell = el('td', ''), part = el('details', ''), text = el('pre', ''), link = el('a', '', 'Save as a file');
    part.append(el('summary', '', 'Generated code: ' + words), link, text);
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
    cell.append(part);
    tr.append(cell);
    return tr;
  }

  function clear() { shown = ''; all = false; box.replaceChildren(); }
  return { take, clear };
}
