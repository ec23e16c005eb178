// How well an entry of the palette matches what was typed. Every word has to be found; what is called so comes before what
// begins so, that before a word of its title, that before another name of it, and what only speaks of it comes last.
const CALLED = 16, BEGINS = 8, WORD = 4, ALIAS = 2, SPOKEN = 1, NOT_SAID = ['true', 'none', 'auto'];
/** @param {string} text */
export const normalized = (text) => text.toLowerCase().replace(/[-_.]/g, '');
const wordsOf = (text) => text.split(/[\s=:,;()[\]{}"']+/).map(normalized).filter(Boolean);

/** @param {Palette.Entry} entry */
const namesOf = (entry) => [entry.name, entry.title, entry.axis_name, entry.axis].map(normalized).filter(Boolean);

/** @param {Palette.Entry} entry @param {string} word */
function matchOfWord(entry, word) {
  const names = namesOf(entry), beside = wordsOf([entry.title, entry.name, entry.axis].join(' '));
  if (names.includes(word)) return CALLED;
  if (!entry.whole && names.some(name => name.startsWith(word))) return BEGINS;
  // a preset puts back every other choice: it comes behind a choice that is named as well
  if (beside.some(name => name.startsWith(word))) return WORD + (beside.includes(word) ? 1 : 0) - (entry.whole ? WORD - SPOKEN : 0);
  const aliases = entry.aliases.flatMap(wordsOf);
  if (aliases.some(name => name.startsWith(word))) return ALIAS + (entry.aliases.some(name => normalized(name) === word) ? 1.5 : aliases.includes(word) ? 1 : 0);
  return normalized([entry.title, entry.axis, entry.group, entry.summary, entry.words, ...entry.aliases].join(' ')).includes(word) ? SPOKEN : 0;
}
/** 0: it does not match. @param {Palette.Entry} entry @param {string} typed */
function matchOf(entry, typed) {
  const words = wordsOf(typed).filter(word => !NOT_SAID.includes(word)), scores = words.map(word => matchOfWord(entry, word));
  if (scores.includes(0)) return 0;
  const whole = normalized(typed).trim();
  return 1 + scores.reduce((sum, score) => sum + score, 0) + (namesOf(entry).includes(whole) ? CALLED : 0);
}
// The entries that match, the best first; what matches equally well stays in its order, what cannot run behind the rest.
/** @param {Palette.Entry[]} entries @param {string} typed @returns {Palette.Entry[]} */
export function ranked(entries, typed) {
  const matches = entries.map(entry => [entry, matchOf(entry, typed)]).filter(([, match]) => match);
  if (typed.trim()) matches.sort(([a, m], [b, n]) => n - m || Number(a.state === 'cannot run') - Number(b.state === 'cannot run'));
  return matches.map(([entry]) => entry);
}
/** How what an entry adds is called (`key_of` of backend/runs/earlier.py). @param {Pick<Palette.Entry, 'choices' | 'whole'>} entry */
export const keyOf = ({ choices, whole }) => (whole ? 'whole ' : '') + Object.entries(choices).map(pair => pair.join('=')).sort().join(' ');
