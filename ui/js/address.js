// The address names the page, its model and what else it needs, so that it can be reloaded, shared, and gone back from.
const PAGES = ['compare', 'advise', 'batching', 'fit', 'stories', 'history', 'claims', 'worth'];
const WITHOUT_MODEL = ['stories', 'history', 'claims', 'worth'];
/** Keys of pages which no control fills when the page is opened. @type {{ [page: string]: string[] }} */
const OWN_KEYS = {
  history: ['q', 'of', 'axis', 'machine', 'since', 'until', 'at', 'pins', 'beside'],
  worth: ['worth', 'sweep'], advise: ['advice'], stories: ['story'], claims: ['name'],
};
const KEYS = ['view', 'model', 'gpu', 'gpus', 'context', 'batch', ...Object.values(OWN_KEYS).flat()];
/** @type {{ [page: string]: { [key: string]: any } }} */
const facts = Object.fromEntries(PAGES.map((page) => [page, {}]));
const runs = {};  // by page, the run that its address named when it was left: no other page's address names it
// The room that the page opened in, as its settings say: to enter it is no turn, which would drop a run from the address.
const opened = window.gradio_config?.components.find(({ props }) => props.elem_id === 'pages');
let current = opened?.props.selected ?? 'compare', first = current;
let model = '';  // of the page that was shown last and has one
const readAddress = (page) => {
  const here = new URL(location.href).searchParams;
  for (const key of OWN_KEYS[page]) facts[page][key] = here.get(key);
};
Object.keys(OWN_KEYS).forEach(readAddress);
const returning = [];  // pages that Back and Forward led to and whose tabs are still to open, the last one last

const titles = {};  // by page, of what is shown there: a run that has ended, a story
const entitle = () => {
  document.title = (titles[current] || current[0].toUpperCase() + current.slice(1)) + ' - tokendyno';
};
const show = (page) => {
  current = page;
  entitle();
};
const addressOf = (page) => {
  const here = new URL(location.href);
  KEYS.forEach((key) => here.searchParams.delete(key));
  for (const [key, value] of Object.entries({ view: page, ...facts[page] })) {
    if (value !== '' && value !== null && value !== undefined) here.searchParams.set(key, value);
  }
  return here;
};
// `push`: a view of its own, which Back leaves. Before anything is pressed, controls are being filled: it stays as it came.
const write = (there, push) => {
  if (!navigator.userActivation.hasBeenActive || there.href === location.href) return;
  if (push) history.pushState(history.state, '', there.href); else history.replaceState(history.state, '', there.href);
};

const turnTo = (page) => {
  runs[current] = new URL(location.href).searchParams.get('run');
  const there = addressOf(page);
  there.searchParams.delete('run');
  if (runs[page]) there.searchParams.set('run', runs[page]);
  write(there, true);
};
const amend = (page, push = false) => write(addressOf(page), push);

// Values of the Fit page: its device where it is not this machine, its amounts where they are not the first ones.
const worded = (names, values) => {
  const keys = Object.fromEntries(names.map((name, at) => [name, values[at]]));
  if (keys.gpu === 'this machine') keys.gpu = '';
  if (keys.gpus === 1) keys.gpus = '';
  if ('amounts' in keys) {
    const { context, batch } = JSON.parse(keys.amounts || '{}');
    Object.assign(keys, { context, batch: batch === 1 ? '' : batch });
    delete keys.amounts;
  }
  return keys;
};

window.tokendynoAddress = {
  enter(page, models) {
    model = models[PAGES.indexOf(current)] ?? (model || models[0]);
    const at = returning.indexOf(page), last = at === returning.length - 1;
    if (page !== current) {
      if (!WITHOUT_MODEL.includes(page)) facts[page].model = model;
      if (at < 0) turnTo(page); else if (last) amend(page);
      show(page);
    }
    returning.splice(0, at + 1);
    return model;
  },
  tell(page, names, values) {
    Object.assign(facts[page], worded(names, values));
    if (page === current) amend(page);
  },
  // A page that is not shown has begun to show a run: its address will name that.
  note(page, run) { runs[page] = run; },
  // What a page shows has a title of its own, '' no longer: it tells browser tabs apart.
  title(page, text) {
    titles[page] = text;
    if (page === current) entitle();
  },
  get page() { return current; },
  // What a page says of itself; `push`: a view of its own, which Back leaves.
  keep(page, named, push) {
    facts[page] = named;
    if (page === current) amend(page, push);
  },
};
watch('value', () => { if (props.value) show(first = props.value); });
window.addEventListener('popstate', () => {
  const view = new URL(location.href).searchParams.get('view')?.toLowerCase(), page = PAGES.includes(view) ? view : first;
  if (page === 'history') readAddress(page);
  if (page === (returning.at(-1) ?? current)) return;
  returning.push(page);
  const tabs = [...document.querySelectorAll('#pages [role="tab"]')];
  tabs.find((tab) => tab.textContent.trim().toLowerCase() === page)?.click();
});
