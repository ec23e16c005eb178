// What a change costs in quality: a row for each text that both arms have read, and one for all of them.

import { add, redrawn, scrolled, tableBody, tableHead, tableRow } from '../../components/js/dom.js';
import { titled } from './terms.js';

const COLUMNS = [
  ['title', 'Text', ''], ['positions', 'Positions', 'tokens that both arms were asked to predict'],
  ['a', 'Perplexity A', ''], ['b', 'Perplexity B', ''], ['ratio', 'B / A', 'perplexity of B / perplexity of A'],
  ['kl', 'KL, nats', 'mean divergence of B from A'], ['largest', 'Largest KL', 'at a single position'],
  ['agreement', 'Agreement', 'positions at which both find the same token most likely'],
  ['divergence', 'First divergence', 'first position at which they do not'],
];

/** @param {HTMLElement} box */
export function makeQuality(box) {
  return redrawn(box, /** @param {Live.QualityView | null} view */ view => {
    if (!view) return;
    const head = tableHead(COLUMNS.map(([, name, what]) => {
      const cell = titled('span', '', name);
      if (!cell.querySelector('button')) cell.title = what;
      return cell;
    }));
    const rows = view.rows.map((row, i) => tableRow(row.title, COLUMNS.slice(1).map(([key]) => row[key]), i === view.rows.length - 1 ? 'td-all-texts' : ''));
    add(box, 'h3', '', 'Quality on given texts');
    box.append(scrolled('td-quality-rows', 'Quality by text', [head, tableBody(rows)]).box);
    if (view.progress) add(box, 'p', 'td-quality-progress', view.progress);
    if (!view.compared) return;
    const line = add(box, 'p'), link = add(line, 'a', 'td-compared', 'The comparison of these arms');
    link.href = '?' + new URLSearchParams({ run: view.compared });
    line.append(' names this cost beside its gain.');
  });
}
