// The figures of the arms: tiles for the first ones, and a table of all others, in a part of the page that is closed at first.

import { add, armsHead, el, redrawn, setText, tableRow } from '../../components/js/dom.js';
import { titled } from './terms.js';

// A tile has the values of the arms side by side, and below them what B's is against A's. It stays where it is from run to
// run, so that nothing moves; what is known besides its value is in its tooltip.

/** @param {HTMLElement} box */
export function makeTiles(box) {
  let cells = new Map(), keys = '';

  /** @param {Pick<Live.ArmHead, 'name' | 'tiles'>[]} arms @param {Live.Head['differences']} differences */
  function take(arms, differences) {
    const all = [...new Map(arms.flatMap(arm => arm.tiles.map(tile => [tile.key, tile.label])))];
    const now = JSON.stringify([all, arms.map(arm => arm.name)]);
    if (keys !== now) build(all, arms, now);
    for (const [key] of all) {
      const tiles = arms.map(arm => arm.tiles.find(tile => tile.key === key)), { card, values, unit, foot } = cells.get(key);
      const units = [...new Set(tiles.map(tile => tile && tile.unit).filter(Boolean))], shared = units.length === 1;
      values.forEach((value, i) => {
        const tile = tiles[i], known = tile && tile.value !== 'n/a';
        setText(value.number, known ? tile.value : '\u2013');
        setText(value.unit, known && !shared && tile.unit ? ' ' + tile.unit : '');
      });
      setText(unit, shared ? units[0] : '');
      const difference = differences[key];
      setText(foot, difference ? difference.text : commonNote(tiles.map(tile => tile ? tile.note : '')));
      foot.className = 'td-foot' + (difference && difference.better ? ' better' : '');
      card.title = tiles.map((tile, i) => tile && tile.note ? arms[i].name + ': ' + tile.value + ' ' + tile.unit + ', ' + tile.note : '').filter(Boolean).join('\n');
    }
  }

  /** The note of both arms, or the text that only one has so far; a note with a number is left to the tooltip. @param {string[]} notes */
  function commonNote(notes) {
    const [note, ...others] = new Set(notes.filter(Boolean));
    const all = notes.every(Boolean);
    return note && !others.length && (all || !/\d/.test(note)) ? note : '';
  }

  function build(all, arms, now) {
    box.replaceChildren();
    cells = new Map();
    keys = now;
    for (const [key, label] of all) {
      const card = el('div', 'td-tile'), line = el('p', 'td-figure'), unit = el('span', 'td-unit', ''), foot = el('small', 'td-foot', '');
      card.dataset.key = key;
      const values = arms.map(arm => {
        const value = el('b', 'arm-' + arm.name.toLowerCase()), number = el('span', '', ''), own = el('small', '', '');
        value.append(number, own);
        line.append(el('span', 'td-hidden', 'Arm ' + arm.name + ': '), value);
        return { number, unit: own };
      });
      line.append(unit);
      card.append(titled('h3', '', label), line, foot);
      box.append(card);
      cells.set(key, { card, values, unit, foot });
    }
  }

  function clear() {
    for (const { card, values, unit, foot } of cells.values()) {
      card.title = '';
      values.forEach(value => { setText(value.number, '\u2013'); setText(value.unit, ''); });
      setText(unit, '');
      setText(foot, '');
    }
  }
  return { take, clear };
}

/** @param {HTMLElement} box */
export function makeDetails(box) {
  /** @param {Pick<Live.ArmHead, 'name' | 'details'>[]} arms */
  function draw(arms) {
    if (!arms.length) {
      add(box, 'p', 'td-empty', 'Percentiles, intervals and readings of the machine appear here once an arm has finished.');
      return;
    }
    const table = add(box, 'table');
    table.append(armsHead('Figure', arms));
    const body = add(table, 'tbody'), keys = new Map(arms.flatMap(arm => arm.details.map(tile => [tile.key, tile.label])));
    for (const [key, label] of keys) {
      const row = tableRow(label, arms.map(arm => cellOf(arm.details.find(tile => tile.key === key))));
      row.dataset.key = key;
      body.append(row);
    }
  }

  /** @param {Live.Tile | undefined} tile */
  function cellOf(tile) {
    if (!tile) return '';
    return [el('b', '', tile.value), tile.unit ? ' ' + tile.unit : '', tile.note ? el('small', '', tile.note) : ''];
  }

  const { take, clear } = redrawn(box, draw);
  /** @param {Pick<Live.ArmHead, 'name' | 'details'>[]} arms */
  const ready = arms => arms.filter(arm => arm.details.length).map(({ name, details }) => ({ name, details }));
  return { take: arms => take(ready(arms)), clear };
}
