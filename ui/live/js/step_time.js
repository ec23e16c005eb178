// Where time goes: that of a step, or of an arm's start. A bar for each arm, on one scale, which ends at the measured time,
// with what its bytes need under it; and the same in a table. An arm without a traced step says why; without any arm there
// is nothing. Below: when the arm that starts later gets ahead.

import { add, armsHead, badge, css, el, onTheme, redrawn, scrolled, tableBody, tableRow } from '../../components/js/dom.js';
import { drawPlot, look, withoutMarkup } from '../../components/js/plot.js';
import { lineOf } from './chart_data.js';

/**
 * @param {HTMLElement} box
 * @param {{ of: (arm: any) => any, title: string, hint?: string, whole: string, numbers: string, lacking?: string }} words
 */
export function makeParts(box, { of, title, hint, whole, numbers, lacking }) {
  const { take, clear } = redrawn(box, arms => {
    if (!arms.length) return;
    const traced = arms.filter(arm => !arm.step.missing), longest = Math.max(...traced.map(arm => arm.step.seconds));
    const heading = add(box, 'h3', '', title);
    if (traced.some(arm => arm.step.parts.some(part => part.reads_s !== null))) add(heading, 'span', 'td-part-hint', hint);
    box.append(...traced.map(arm => bar(arm, longest)));
    if (traced.length) box.append(scrolled('td-part-scroll', numbers, [armsHead('Part', traced), tableBody(rows(traced))]).box);
    for (const { name, step } of arms) {
      const said = step.missing ? lacking + step.missing : step.said[0].toUpperCase() + step.said.slice(1);
      add(box, 'p', 'arm-' + name.toLowerCase()).append(badge(name), said + '.');
    }
  });

  function bar({ name, step }, longest) {
    const row = el('div', 'td-part-bar arm-' + name.toLowerCase());
    row.setAttribute('aria-hidden', 'true');
    row.append(badge(name));
    const track = add(row, 'div', 'td-part-track');
    for (const part of step.parts) {
      if (!part.seconds) continue;
      const piece = add(track, 'span', 'td-part-piece td-part ' + part.key);
      piece.style.width = 100 * part.seconds / longest + '%';
      piece.title = [part.label + ' ' + part.text, part.reads].filter(Boolean).join(', ');
      if (part.reads_s !== null) add(piece, 'i', 'td-part-need').style.width = Math.min(100, 100 * part.reads_s / part.seconds) + '%';
    }
    return row;
  }

  function rows(arms) {
    const parts = [];  // in the order in which they happen, also where an arm has parts that the one before has not
    for (const arm of arms) {
      let place = 0;
      for (const part of arm.step.parts) {
        const known = parts.findIndex(other => other.key === part.key);
        if (known < 0) parts.splice(place++, 0, part);
        else place = known + 1;
      }
    }
    return [...parts.map(({ key, label }) => {
      const row = tableRow([el('i', 'td-part-key td-part ' + key), label], arms.map(arm => cellOf(arm.step.parts.find(part => part.key === key))));
      row.dataset.key = key;
      return row;
    }), tableRow(whole, arms.map(arm => arm.step.text))];
  }

  function cellOf(part) {
    if (!part) return '';
    const share = part.seconds === null ? '' : ' ' + Math.round(100 * part.share) + '%';
    return [el('b', '', part.text), share, part.reads ? el('small', '', part.reads) : ''];
  }

  return { take: arms => take(arms.map(arm => ({ name: arm.name, step: of(arm) })).filter(arm => arm.step)), clear };
}

// When waiting pays: seconds since each arm's imports were done, over tokens. The lines cross where the arm that starts later
// gets ahead; the sentence under the verdict says it in words.
/** @param {HTMLElement} box */
export function makeCrossing(box) {
  /** @type {{ arms: { name: string, line?: number }[], crossing: Live.Crossing, unit: string } | null} */
  let drawn = null;

  function draw() {
    if (!drawn) return;
    const { arms, crossing: { starts_s, steps_s, tokens, label }, unit } = drawn, last = 2 * tokens;
    const after = (a, count) => starts_s[a] + count * steps_s[a], met = after(0, tokens);
    const point = () => ({ size: 9, color: css('--body-background-fill'), line: { width: 2, color: css('--body-text-color') } });
    drawPlot(box.querySelector('.td-crossing-plot'), () => [...arms.map((arm, a) => ({
      mode: 'lines', name: 'Arm ' + withoutMarkup(arm.name), line: { width: 2, ...lineOf(arm, a) }, x: [0, last], y: [after(a, 0), after(a, last)],
    })), { mode: 'markers', x: [tokens], y: [met], marker: point(), showlegend: false }], {
      ...look(11, '--body-text-color'), height: 220, margin: { t: 24, b: 38, l: 46, r: 8 }, hovermode: false,
      showlegend: true, legend: { orientation: 'h', x: 1, xanchor: 'right', y: 1, yanchor: 'bottom' },
      xaxis: { range: [0, last], nticks: 6, tickformat: ',', title: { text: unit === 'forward' ? 'forward passes' : 'tokens', standoff: 4 } },
      yaxis: { range: [0, 1.05 * Math.max(...arms.map((_, a) => after(a, last)))], nticks: 6, ticksuffix: ' s' },
      annotations: [{ x: tokens, y: met, text: '<b>' + withoutMarkup(label) + '</b>', showarrow: false, yanchor: 'top', xanchor: 'left', xshift: 8, yshift: -6 }],
    }, { staticPlot: true });
  }

  const { take, clear } = redrawn(box, crossed => {
    drawn = crossed;
    if (!drawn) return;
    const over = drawn.unit === 'forward' ? 'forward passes' : 'tokens written';
    add(add(box, 'h3', '', 'When does waiting pay?'), 'span', 'td-part-hint', 'seconds since the imports were done, over ' + over);
    add(box, 'div', 'td-crossing-plot').setAttribute('aria-hidden', 'true');
    draw();
  });
  onTheme(draw);
  return {
    /** @param {Live.Head} head */
    take: ({ arms, crossing, unit }) => take(crossing ? { arms: arms.map(({ name }) => ({ name })), crossing, unit } : null),
    clear() { drawn = null; clear(); },
  };
}
