// The pinned arms: two to five, of any runs.

import { focusWithin } from '../../components/js/focus.js';
import { el, find } from '../../live/js/dom.js';
import { afterPress } from '../../components/js/press.js';
import { change, complain, state } from './state.js';
import { inputs } from './search.js';
import { button, seen } from './rows.js';

/** @param {string} pin */
export function toggle(pin) {
  const on = state.pins.includes(pin);
  if (!on && state.pins.length >= settings.most) {
    complain(new Error(settings.most + ' arms are pinned, which is as many as can stand side by side. Unpin one first.'));
    return;
  }
  change({ pins: on ? state.pins.filter(one => one !== pin) : [...state.pins, pin] }, false);
}

/** @param {string} pin */
function pinName(pin) {
  const at = pin.indexOf('.');
  return seen.get(pin) || pin.slice(0, Math.min(8, at)) + ' ' + pin.slice(at + 1);
}

const tray = find('.td-tray');
export const showTray = afterPress(tray, () => {
  const { pins } = state, held = focusWithin(tray)?.dataset.press;
  tray.hidden = !pins.length;
  const enough = pins.length >= settings.fewest;
  const chips = pins.map((pin, at) => {
    const chip = el('span', 'td-pinned arm-' + (at + 1));
    const off = button('td-unpin', '\u00d7', 'Unpin ' + pinName(pin), () => {
      const left = state.pins.filter(one => one !== pin);
      change({ pins: left, beside: state.beside && left.length >= settings.fewest }, state.beside);
    });
    off.dataset.press = pin;
    chip.append(el('b', 'td-arm', String(at + 1)), el('span', '', pinName(pin)), off);
    return chip;
  });
  const view = button('td-compare', 'Side by side', '', () => change({ beside: true }, true));
  view.disabled = !enough || state.beside;
  view.dataset.press = 'view';
  const none = button('td-unpin-all', 'Unpin all', '', () => change({ pins: [], beside: false }, state.beside));
  none.dataset.press = 'none';
  tray.replaceChildren(...chips, view, none, el('span', 'td-hint', enough ? '' : 'Pin ' + settings.fewest + ' to ' + settings.most + ' arms, of any runs.'));
  if (!held) return;
  const again = [...tray.querySelectorAll('button:enabled')].find(one => one.dataset.press === held);
  (again || tray.querySelector('.td-unpin') || inputs.q).focus();
});
