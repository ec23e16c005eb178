// What is looked for and what is pinned, as the address says it: every view can be reloaded, shared and gone back from.

import { find, setText } from '../../components/js/dom.js';
import { show } from './page.js';

export const FIELDS = ['q', 'of', 'axis', 'machine', 'since', 'until'];

/**
 * What is looked for, by the names of FIELDS, and what is pinned.
 * @typedef {{ [field: string]: any, at: string, pins: string[], beside: boolean }} State
 */

/** @param {string} search @returns {State} */
function stateOf(search) {
  const query = new URLSearchParams(search);
  /** @type {{ [field: string]: string }} */
  const fields = Object.fromEntries(FIELDS.map(key => [key, query.get(key) || '']));
  return {
    ...fields, at: query.get('at') || '1',
    pins: (query.get('pins') || '').split(',').filter(Boolean), beside: query.get('beside') === '1',
  };
}

// The same, as the keys of the address; '' is left out.
function factsOf(state) {
  return { ...state, at: state.at === '1' ? '' : state.at, pins: state.pins.join(','), beside: state.beside ? '1' : '' };
}

export let state = stateOf(location.search);

// Back and Forward led to another view.
export function readAddress() {
  state = stateOf(location.search);
}

/** `push`: a view of its own, which Back leaves; else the same view, refined. @param {Partial<State>} some @param {boolean} push */
export function change(some, push) {
  state = { ...state, ...some };
  if (window.tokendynoAddress) window.tokendynoAddress.keep('history', factsOf(state), push);
  show();
}

/** @param {number} seconds */
export function when(seconds) {
  const at = new Date(1000 * seconds), two = value => String(value).padStart(2, '0');
  if (!seconds || isNaN(Number(at))) return 'unknown';
  return [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-') + ' ' + two(at.getHours()) + ':' + two(at.getMinutes());
}

/** What the server said to a call; an Error with a sentence where it did not answer. @param {Promise<string>} call */
export async function answerTo(call) {
  try {
    return JSON.parse(await call);
  } catch (cause) {
    throw new Error('The server does not answer. Nothing was changed: try again.', { cause });
  }
}

/** An answer to a question; an Error with its sentence where the server refuses. @param {object} query */
export async function question(query) {
  const reply = await answerTo(server.ask(query));
  if (reply.error) throw new Error(reply.error);
  return reply;
}

/** @param {Error | null} error */
export function complain(error) {
  setText(find('.td-failure'), error ? error.message : '');
}
