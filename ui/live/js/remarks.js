// Remarks: verdicts of the rules, possible interference with the measurement, and notes of the worker.

import { el } from './dom.js';

const LEVEL_LABELS = { ok: '', note: 'Note: ', fallback: '\u25B2 Fallback: ', blocked: '\u2715 Blocked: ' };

/** @param {HTMLElement} box @param {Pick<Live.ArmHead, 'name' | 'verdicts' | 'spoilers' | 'notes'>[]} arms */
export function showRemarks(box, arms) {
  const lines = arms.flatMap(arm => [
    ...arm.verdicts.filter(v => v.level !== 'ok').map(v => ({ arm: arm.name, level: v.level, text: LEVEL_LABELS[v.level] + v.reason })),
    ...arm.spoilers.map(text => ({ arm: arm.name, level: 'fallback', text: '\u25B2 ' + text })),
    ...arm.notes.map(text => ({ arm: arm.name, level: 'note', text: LEVEL_LABELS.note + text })),
  ]);
  const now = JSON.stringify(lines);
  if (box.dataset.shown === now) return;
  box.dataset.shown = now;
  box.replaceChildren(...lines.map(one => {
    const li = el('li', one.level + ' arm-' + one.arm.toLowerCase());
    li.append(el('span', 'td-arm', one.arm), document.createTextNode(one.text));
    return li;
  }));
}
