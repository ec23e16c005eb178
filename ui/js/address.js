// The address names the page, its model and what else it needs, so that it can be reloaded, shared, and gone back from.
const PAGES = ['compare', 'advise', 'batching', 'fit', 'stories', 'history', 'claims', 'worth'];
const WITHOUT_MODEL = ['stories', 'history', 'claims', 'worth'];
/** Keys of pages which no control fills when the page is opened. @type {{ [page: string]: string[] }} */
const OWN_KEYS = {
  history: ['q', 'of', 'axis', 'machine', 'since', 'until', 'at', 'pins', 'beside'],
  worth: ['worth', 'sweep'], advise: ['advice'], stories: ['story'], claims: ['name'],
};
// Amounts of Compare, which a run has as well, and the inputs that they come from.
const AMOUNTS = { tokens: 'max-new-tokens', batch_size: 'batch-size', prompt_tokens: 'prompt-tokens' };
const KEYS = ['view', 'model', 'run', 'a', 'b', ...Object.keys(AMOUNTS), 'gpu', 'gpus', 'context', 'batch', ...Object.values(OWN_KEYS).flat()];
/** @type {{ [page: string]: { [key: string]: any } }} */
const facts = Object.fromEntries(PAGES.map((page) => [page, {}]));
const opened = (id) => window.gradio_config?.components.find(({ props }) => props.elem_id === id)?.props;
// The room that the page opened in, as its settings say: to enter it is no turn, which would drop a run from the address.
let current = opened('pages')?.selected ?? 'compare', first = current, touched = false;
facts.compare.model = opened('model')?.value;
// By page, the run that its address names: no other page's address does, and it says nothing of arms and amounts, which the
// run has.
const runs = { [current]: new URL(location.href).searchParams.get('run') };
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
  const { a, b, tokens, batch_size, prompt_tokens, ...named } = facts[page];
  const own = runs[page] ? { run: runs[page] } : { a, b, tokens, batch_size, prompt_tokens };
  for (const [key, value] of Object.entries({ view: page, ...named, ...own })) {
    if (value !== '' && value !== null && value !== undefined) here.searchParams.set(key, value);
  }
  here.search = here.search.replace(/(?<=[?&][ab]=)[^&]+/g, (arm) => arm.replace(/%(?:3A|2C|3D)/g, decodeURIComponent));
  return here;
};
// `push`: a view of its own, which Back leaves. Before anything is pressed, controls are being filled: it stays as it came.
const write = (there, push) => {
  if (!touched || there.href === location.href) return;
  if (push) history.pushState(history.state, '', there.href); else history.replaceState(history.state, '', there.href);
};

const amend = (page, push = false) => write(addressOf(page), push);

// Values of Fit and Compare: a device where it is not this machine, amounts where they are not the first ones.
const worded = (names, values) => {
  const keys = Object.fromEntries(names.map((name, at) => [name, values[at]]));
  if (keys.gpu === 'this machine') keys.gpu = '';
  if (keys.gpus === 1) keys.gpus = '';
  for (const [key, id] of Object.entries(AMOUNTS)) if (keys[key] === opened(id)?.value) keys[key] = '';
  if ('amounts' in keys) {
    const { context, batch } = JSON.parse(keys.amounts || '{}');
    Object.assign(keys, { context, batch: batch === 1 ? '' : batch });
    delete keys.amounts;
  }
  return keys;
};

// What no address says, such as a prompt: this tab alone keeps it, for a reload, or for Back from another site.
const DRAFTS = 'tokendyno-drafts';
const readDrafts = () => {
  try {
    const { at, values } = JSON.parse(sessionStorage.getItem(DRAFTS));
    const [{ type }] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType('navigation'));
    return at === location.search && type !== 'navigate' ? values : {};
  } catch { return {}; }  // there is none, or this browser keeps nothing
};
const kept = readDrafts(), drafts = { ...kept };
const again = {};  // by page, a run that was brought back and is still to be shown
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) return;
  try { sessionStorage.setItem(DRAFTS, JSON.stringify({ at: location.search, values: drafts })); } catch { /* as above */ }
});

window.tokendynoAddress = {
  enter(page, models) {
    model = models[PAGES.indexOf(current)] ?? (model || models[0]);
    const at = returning.indexOf(page), last = at === returning.length - 1;
    if (page !== current) {
      if (!WITHOUT_MODEL.includes(page)) facts[page].model = model;
      if (at < 0) amend(page, true); else if (last) amend(page);
      show(page);
    }
    returning.splice(0, at + 1);
    return model;
  },
  tell(page, names, values) {
    Object.assign(facts[page], worded(names, values));
    if (page === current) amend(page);
  },
  // A page shows a run, which its address names or, while it is not shown, will name: not one that came back with a
  // draft, since the address names other arms.
  note(page, run) {
    const back = run === again[page];
    delete again[page];
    if (!back) runs[page] = run;
    return !back;
  },
  /** An arm of Compare, by "a" or "b". @param {string} name @param {Arm.Link} link */
  arm(name, { written, run, own }) {
    const late = run !== (document.querySelector('#live [data-run]')?.dataset.run ?? '');
    const named = late ? runs.compare : own ? run : '';
    if (facts.compare[name] === written && (runs.compare ?? '') === (named ?? '')) return;
    facts.compare[name] = written;
    runs.compare = named;
    if (current === 'compare') amend('compare');
  },
  get touched() { return touched; },
  draft(page, ids, values) { drafts[page] = Object.fromEntries(ids.map((id, at) => [id, values[at]])); },
  // A run that the address names by itself comes before that which was shown when the page was left.
  bringBack(page, ids, [run, ...values]) {
    const before = kept[page] ?? {}, [shown, ...names] = ids;
    if (!run) again[page] = before[shown];
    return [run || before[shown] || '', ...values.map((value, at) => names[at] in before ? before[names[at]] : value)];
  },
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
for (const kind of ['pointerdown', 'keydown']) window.addEventListener(kind, () => { touched = true; }, true);
watch('value', () => { if (props.value) show(first = props.value); });
window.addEventListener('popstate', () => {
  const view = new URL(location.href).searchParams.get('view')?.toLowerCase(), page = PAGES.includes(view) ? view : first;
  if (page === 'history') readAddress(page);
  if (page === (returning.at(-1) ?? current)) return;
  returning.push(page);
  const tabs = [...document.querySelectorAll('#pages [role="tab"]')];
  tabs.find((tab) => tab.textContent.trim().toLowerCase() === page)?.click();
});
