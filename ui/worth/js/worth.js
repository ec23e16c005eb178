// What each choice is worth: pulls an ablation by its id, and draws a waterfall for each figure as bars beside their
// numbers. Text reaches text nodes only.
const EVERY_MS = 1000, STOPPED_MS = 4000;
const EXPLAINED = 'For arms that differ in several choices: each alone, all but one, and one after the other, for latency, memory and quality.';
const find = (name) => element.querySelector('.td-worth-' + name);
const write = (name, text) => { if (find(name).textContent !== text) find(name).textContent = text; };
let id = '', shown = '', due = 0;

const bar = (cell, found) => {
  if (!found) { add(cell, 'span', 'td-worth-unknown', '\u2013'); return; }
  const track = add(cell, 'span', 'td-worth-track');
  const [left, right] = [found.begin, found.end].sort((a, b) => a - b);
  const piece = add(track, 'i', 'td-worth-bar' + (found.better === 'yes' ? ' better' : found.end === found.begin ? ' none' : ''));
  piece.style.left = 100 * left + '%';
  piece.style.width = 100 * (right - left) + '%';
  if (found.low !== null) {
    const whisker = add(track, 'i', 'td-worth-whisker');
    whisker.style.left = 100 * found.low + '%';
    whisker.style.width = 100 * (found.high - found.low) + '%';
  }
  const said = add(cell, 'span', 'td-worth-number' + (found.better === 'yes' ? ' better' : ''), found.text);
  if (found.interval) add(said, 'small', '', found.interval);
};
const table = (box, figures, group) => {
  const whole = add(box, 'table', ''), caption = add(whole, 'caption', '', group.title);
  add(caption, 'small', '', group.what);
  const top = add(add(whole, 'thead', ''), 'tr', '');
  for (const title of ['Step', ...figures]) add(top, 'th', '', title).scope = 'col';
  const body = add(whole, 'tbody', '');
  group.rows.forEach((row) => {
    const tr = add(body, 'tr', ''), name = add(tr, 'th', '', row.title);
    name.scope = 'row';
    for (const remark of row.remarks) add(name, 'small', '', remark);
    for (const one of row.bars) bar(add(tr, 'td', ''), one);
  });
};
const draw = (found) => {
  const now = JSON.stringify([found.figures, found.groups]);
  if (now === shown) return;
  shown = now;
  const box = find('groups');
  box.replaceChildren();
  for (const group of found.groups) {
    const scroll = add(box, 'div', 'td-worth-group');
    Object.assign(scroll, { tabIndex: 0, ariaLabel: group.title });
    scroll.setAttribute('role', 'region');
    table(scroll, found.figures, group);
  }
};
const state = (found) => {
  const running = found.state === 'running', open = found.state === 'stopped' || found.state === 'failed';
  find('begin').hidden = running;
  find('stop').hidden = !running;
  find('again').hidden = !open;
  find('progress').hidden = !running;
  find('progress').value = found.share;
  write('sentence', found.sentence);
  write('doing', [found.doing, found.left].filter(Boolean).join(' \u00b7 '));
  write('failure', found.message);
};
const pull = async () => {
  clearTimeout(due);
  const mine = id;
  if (!mine || !element.isConnected) return;
  let next = EVERY_MS;
  try {
    const found = document.hidden ? null : JSON.parse(await server.pull({ id: mine }));
    if (mine !== id) return;
    if (found && found.error) { write('failure', found.error); return; }
    if (found) {
      draw(found);
      state(found);
      if (found.state === 'done') return;
      if (found.state !== 'running') next = STOPPED_MS;
    }
  } catch (error) {
    write('doing', 'The server does not answer. Retrying; nothing is lost.');
  }
  due = setTimeout(pull, next);
};
const link = () => {
  find('link').hidden = !id;
  if (!id) return;
  const here = new URL(location.href);
  here.search = '?' + new URLSearchParams({ worth: id });
  find('address').href = here.href;
  find('address').textContent = here.search;
};
const open = () => {
  id = props.value || '';
  shown = '';
  find('groups').replaceChildren();
  write('failure', '');
  write('doing', '');
  write('sentence', id ? '' : EXPLAINED);
  link();
  if (id) pull();
};
find('begin').addEventListener('click', () => trigger('begin', {}));
find('stop').addEventListener('click', () => { trigger('halt', {}); });
find('again').addEventListener('click', () => { trigger('again', {}); due = setTimeout(pull, 600); });
open();
watch('value', () => { if ((props.value || '') !== id) open(); });
