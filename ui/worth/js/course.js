// What an ablation and a sweep share: pulled by an id, begun, stopped, gone on with, and found again by an address.

import { onTheme, scrolled, setText, tableBody, tableHead, tableRow } from '../../components/js/dom.js';

const EVERY_MS = 1000, STOPPED_MS = 4000;
/** @template {HTMLElement} T @param {string} name @returns {T} */
export const find = (name) => element.querySelector('.td-worth-' + name);
const write = (name, text) => setText(find(name), text);
/** @type {HTMLElement} */
export const result = find('result');

// Rows of text under a head, in a region that moves where it is too wide.
/** @param {HTMLElement} parent @param {string} label @param {string[][]} rows */
export function tableIn(parent, label, [head, ...rows]) {
  const lines = rows.map(([name, ...cells]) => tableRow(name, cells));
  for (const line of lines) head.forEach((title, i) => { line.cells[i].dataset.label = title; });  // for a narrow window
  const { box, table } = scrolled('td-worth-group', label, [tableHead(head), tableBody(lines)]);
  table.className = 'td-sweep-table';
  parent.append(box);
}
// draw(view): shows what was measured; begin(): what the event "begin" carries; explained: what is said before it.
/** @param {{ draw: (view: any) => void, begin: () => object, explained: string }} course */
export function showCourse({ draw, begin, explained }) {
  let id = '', shown = '', last = null, timer = 0, begun = false;
  const drawn = (view) => {
    const { course, ...rest } = view, now = JSON.stringify(rest);
    if (now === shown) return;
    shown = now;
    last = view;
    write('headline', view.headline);
    result.replaceChildren();
    draw(view);
    window.dispatchEvent(new Event('tokendyno-measured'));  // it may have read texts by the arms of the run that is shown
  };
  const state = (progress) => {
    const running = progress.state === 'running';
    find('begin').hidden = running;
    find('stop').hidden = !running;
    find('again').hidden = !progress.again;
    find('progress').hidden = !running;
    /** @type {HTMLProgressElement} */ (find('progress')).value = progress.share;
    write('sentence', progress.sentence);
    write('doing', [progress.doing, progress.left].filter(Boolean).join('\u00a0\u00b7 '));
    write('failure', progress.message);
  };
  const pull = async () => {
    clearTimeout(timer);
    const pulled = id;
    if (!pulled || !element.isConnected) return;
    let next = EVERY_MS;
    try {
      const view = document.hidden ? null : JSON.parse(await server.pull({ id: pulled }));
      if (pulled !== id) return;
      if (view && view.error) { write('failure', view.error); return; }
      if (view) {
        drawn(view);
        state(view.course);
        if (view.course.state === 'done') return;
        if (view.course.state !== 'running') next = STOPPED_MS;
      }
    } catch {
      write('doing', 'The server does not answer. Retrying; nothing is lost.');
    }
    timer = setTimeout(pull, next);
  };
  const link = () => {
    find('link').hidden = !id;
    if (!id) return;
    const here = new URL(location.href);
    here.search = '?' + new URLSearchParams({ [settings.key_of_address]: id });
    Object.assign(find('address'), { href: here.href, textContent: here.search });
  };
  const open = () => {
    id = props.value || '';
    shown = '';
    last = null;
    result.replaceChildren();
    write('headline', '');
    write('failure', '');
    write('doing', '');
    write('sentence', id ? '' : explained);
    link();
    if (id) pull();
  };
  // What is begun here is what the address names from now on, so that a reload shows it again.
  const tell = () => {
    const key = settings.key_of_address;
    window.tokendynoAddress?.tell(key === 'advice' ? 'advise' : 'worth', [key], [id]);
  };
  find('begin').addEventListener('click', () => { begun = true; trigger('begin', begin()); });
  find('stop').addEventListener('click', () => { trigger('halt', {}); });
  find('again').addEventListener('click', () => { trigger('again', {}); timer = setTimeout(pull, 600); });
  onTheme(() => { if (last) { result.replaceChildren(); draw(last); } });
  open();
  watch('value', () => {
    if ((props.value || '') === id) return;
    open();
    if (begun) tell();
  });
}
