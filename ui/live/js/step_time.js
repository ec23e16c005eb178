// Where time goes: that of a step, or of an arm's start. A bar for each arm, on one scale, which ends at the measured time, with what its bytes
// need under it; and the same in a table. An arm without a traced step says why; without any arm there is nothing.

import { armsRow, el } from './dom.js';

/**
 * @param {HTMLElement} box
 * @param {{ of: (arm: any) => any, title: string, hint?: string, whole: string, numbers: string, lacking?: string }} words
 */
export function makeParts(box, { of, title: named, hint, whole, numbers, lacking }) {
  let shown = '';

  function take(arms) {
    const known = arms.map(arm => ({ name: arm.name, step: of(arm) })).filter(arm => arm.step), now = JSON.stringify(known);
    if (now === shown) return;
    shown = now;
    box.hidden = !known.length;
    const traced = known.filter(arm => !arm.step.missing), longest = Math.max(...traced.map(arm => arm.step.seconds));
    const title = el('h3', '', named);
    if (traced.some(arm => arm.step.parts.some(part => part.reads_s !== null))) title.append(el('span', 'td-part-hint', hint));
    box.replaceChildren(title, ...traced.map(arm => bar(arm, longest)));
    if (traced.length) {
      const scroll = el('div', 'td-part-scroll');
      scroll.tabIndex = 0;
      scroll.setAttribute('role', 'region');
      scroll.setAttribute('aria-label', numbers);
      scroll.append(table(traced));
      box.append(scroll);
    }
    for (const arm of known) {
      const line = el('p', 'arm-' + arm.name.toLowerCase());
      line.append(el('span', 'td-arm', arm.name), document.createTextNode(arm.step.missing ? lacking + arm.step.missing + '.' : sentence(arm.step.said)));
      box.append(line);
    }
  }

  function sentence(text) {
    return text[0].toUpperCase() + text.slice(1) + '.';
  }

  function bar({ name, step }, longest) {
    const row = el('div', 'td-part-bar arm-' + name.toLowerCase()), track = el('div', 'td-part-track');
    row.setAttribute('aria-hidden', 'true');
    for (const part of step.parts) {
      if (!part.seconds) continue;
      const piece = el('span', 'td-part-piece td-part ' + part.key);
      piece.style.width = 100 * part.seconds / longest + '%';
      piece.title = [part.label + ' ' + part.text, part.reads].filter(Boolean).join(', ');
      if (part.reads_s !== null) {
        const need = el('i', 'td-part-need');
        need.style.width = Math.min(100, 100 * part.reads_s / part.seconds) + '%';
        piece.append(need);
      }
      track.append(piece);
    }
    row.append(el('span', 'td-arm', name), track);
    return row;
  }

  function table(arms) {
    const found = el('table', ''), head = el('thead', ''), body = el('tbody', '');
    head.append(armsRow('Part', arms));
    const parts = [];  // in the order in which they happen, also where an arm has parts that the one before has not
    for (const arm of arms) {
      let place = 0;
      for (const part of arm.step.parts) {
        const known = parts.findIndex(other => other.key === part.key);
        if (known < 0) parts.splice(place++, 0, part);
        else place = known + 1;
      }
    }
    for (const { key, label } of parts) {
      const row = el('tr', ''), name = el('th', '');
      row.dataset.key = key;
      name.scope = 'row';
      name.append(el('i', 'td-part-key td-part ' + key), document.createTextNode(label));
      row.append(name, ...arms.map(arm => cellOf(arm.step.parts.find(part => part.key === key))));
      body.append(row);
    }
    const row = el('tr', ''), name = el('th', '', whole);
    name.scope = 'row';
    row.append(name, ...arms.map(arm => el('td', '', arm.step.text)));
    body.append(row);
    found.append(head, body);
    return found;
  }

  function cellOf(part) {
    const cell = el('td', '');
    if (!part) return cell;
    cell.append(el('b', '', part.text), document.createTextNode(part.seconds === null ? '' : ' ' + Math.round(100 * part.share) + '%'));
    if (part.reads) cell.append(el('small', '', part.reads));
    return cell;
  }

  function clear() { shown = ''; box.hidden = true; box.replaceChildren(); }
  return { take, clear };
}
