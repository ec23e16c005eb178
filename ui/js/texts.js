// The two texts, as they stream and as they ended. While a text streams only its tail is kept in the document: a
// pane of a hundred thousand characters is laid out anew at every token. At the end each is written whole, with the
// first place marked where A and B part.

const TAIL_MOST = 5000, TAIL_KEPT = 3000;

function makeTexts(box) {
  let panes = [], note = null;

  function build(arms, unit) {
    box.replaceChildren();
    if (unit === 'forward') {
      panes = [];
      box.append(el('p', 'td-empty', 'An encoder makes no text: its forward passes are timed.'));
      return;
    }
    panes = arms.map(arm => {
      const section = el('section', 'td-text arm-' + arm.name.toLowerCase());
      const heading = el('h3', '', '');
      heading.append(el('span', 'td-arm', arm.name), el('span', 'td-label', arm.label));
      const scroll = el('div', 'td-scroll');
      scroll.tabIndex = 0;
      scroll.setAttribute('role', 'region');
      scroll.setAttribute('aria-label', 'Text of arm ' + arm.name);
      const body = el('div', 'td-body');
      body.append(document.createTextNode(''));
      scroll.append(body);
      section.append(heading, scroll);
      box.append(section);
      return { body, whole: false };
    });
    note = el('p', 'td-parting', '');
    box.append(note);
  }

  function append(i, added) {
    if (!added || !panes[i]) return;
    const tail = panes[i].body.firstChild;
    tail.appendData(added);
    if (tail.length > TAIL_MOST) tail.deleteData(0, tail.length - TAIL_KEPT);
  }

  // Write a text whole; from `parting` on (-1: nowhere) it is set apart.
  function whole(i, text, parting) {
    if (!panes[i]) return;
    const body = panes[i].body;
    body.replaceChildren();
    if (parting < 0) { body.append(document.createTextNode(text)); return; }
    const rest = el('span', 'td-apart');
    const mark = el('mark', 'td-mark', '\u2260');
    mark.title = 'From here on the texts differ.';
    rest.append(document.createTextNode(text.slice(parting)));
    body.append(document.createTextNode(text.slice(0, parting)), mark, rest);
  }

  // All texts are complete: compare and write them.
  function finish(lanes) {
    if (!panes.length) return;
    if (lanes.length < 2) {
      lanes.forEach((lane, i) => whole(i, lane.text, -1));
      return;
    }
    const [a, b] = lanes.map(lane => lane.text);
    let at = firstDifference(a, b, 0);
    const shorter = Math.min(a.length, b.length), same = at < 0 && a.length === b.length;
    lanes.forEach((lane, i) => whole(i, lane.text, at));
    if (!shorter) say(note, '');
    else if (same) say(note, 'The texts are identical.');
    else if (at < 0) say(note, 'The texts are identical as far as both go (' + count(shorter) + ' characters).');
    else say(note, 'The texts differ from character ' + count(at + 1) + ' on, marked \u2260.');
  }

  return { build, append, finish };
}
