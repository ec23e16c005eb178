// Tiles: one for each figure, with a line for each arm.
function makeTiles(box) {
  let cells = new Map();

  function take(arms) {
    const keys = arms[0].tiles.map(tile => tile.key).join() + arms.length;
    if (box.dataset.keys !== keys) build(arms, keys);
    arms.forEach(arm => arm.tiles.forEach(tile => {
      const cell = cells.get(arm.name + tile.key);
      if (!cell) return;
      say(cell.value, tile.value);
      say(cell.unit, tile.unit);
      say(cell.note, tile.note);
    }));
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
      box.append(card);
    }
  }

  function clear() { box.replaceChildren(); box.dataset.keys = ''; }
  return { take, clear };
}

