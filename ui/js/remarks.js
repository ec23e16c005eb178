// Remarks: verdicts that were known beforehand, what may have spoiled the figures, and what the worker noted.
const LEVEL_WORDS = { ok: '', note: 'Note: ', fallback: '\u25B2 Fallback: ', blocked: '\u2715 Blocked: ' };

function takeRemarks(box, arms) {
  const lines = arms.flatMap(arm => [
    ...arm.verdicts.filter(v => v.level !== 'ok').map(v => ({ arm: arm.name, level: v.level, text: LEVEL_WORDS[v.level] + v.reason })),
    ...arm.spoilers.map(text => ({ arm: arm.name, level: 'fallback', text: '\u25B2 ' + text })),
    ...arm.notes.map(text => ({ arm: arm.name, level: 'note', text: LEVEL_WORDS.note + text })),
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
