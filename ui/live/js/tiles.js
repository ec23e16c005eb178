// Tiles: one for each figure, with a line for each arm. A note that holds for both arms is shown once, below.
function makeTiles(box) {
  let cells = new Map();

  function take(arms) {
    const keys = arms[0].tiles.map(tile => tile.key).join() + arms.length;
    if (box.dataset.keys !== keys) build(arms, keys);
    arms[0].tiles.forEach((first, i) => {
      const common = commonNote(arms.map(arm => arm.tiles[i].note));
      setText(cells.get(first.key), common);
      cells.get(first.key).title = common;
      for (const arm of arms) {
        const cell = cells.get(arm.name + first.key), tile = arm.tiles[i];
        setText(cell.value, tile.value);
        setText(cell.unit, tile.unit);
        setText(cell.note, common ? '' : tile.note);
      }
    });
  }

  // The note of both arms, or the text that only one has so far; a note with a number stays beside its arm.
  function commonNote(notes) {
    const [note, ...others] = new Set(notes.filter(Boolean));
    const all = notes.every(Boolean);
    return note && !others.length && (all || !/\d/.test(note)) ? note : '';
  }

  function build(arms, keys) {
    box.replaceChildren();
    box.dataset.keys = keys;
    cells = new Map();
    for (const tile of arms[0].tiles) {
      const card = el('div', 'td-tile');
      card.dataset.key = tile.key;
      card.append(el('h3', '', tile.label));
      for (const arm of arms) {
        const line = el('p', 'td-figure arm-' + arm.name.toLowerCase());
        const cell = { value: el('b', ''), unit: el('span', 'td-unit'), note: el('small', '') };
        line.append(el('span', 'td-arm', arm.name), cell.value, cell.unit, cell.note);
        card.append(line);
        cells.set(arm.name + tile.key, cell);
      }
      const foot = el('small', 'td-foot', '');
      card.append(foot);
      cells.set(tile.key, foot);
      box.append(card);
    }
  }

  function clear() { box.replaceChildren(); box.dataset.keys = ''; }
  return { take, clear };
}
