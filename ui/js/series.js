// What the browser holds of a run: one set of columns for each arm, filled by cursor. A reply may overlap what is
// there (several pulls travel at once on a slow line), so every column is cut at the cursor: nothing counts twice.

const TOKEN_COLUMNS = ['t', 'lat', 'kvs', 'kvf'];

function emptyLane() {
  return { t: [], lat: [], kvs: [], kvf: [], st: [], sm: [], text: '', chars: 0 };
}

// Cursor of a lane: tokens, samples, characters. Characters are counted by the server: it counts code points,
// JavaScript counts UTF-16 units.
function cursorOf(lane) {
  return [lane.t.length, lane.st.length, lane.chars];
}

// Take a lane's reply in. Answers which parts grew; `added` is the new text.
function takeLane(lane, reply) {
  const grew = { tokens: 0, samples: 0, added: '' };
  const tokens = lane.t.length;
  if (reply.first <= tokens && reply.n > tokens) {
    for (const key of TOKEN_COLUMNS) {
      const column = lane[key], from = reply[key];
      for (let i = tokens - reply.first; i < from.length; i++) column.push(from[i]);
    }
    grew.tokens = reply.n - tokens;
  }
  const samples = lane.st.length;
  if (reply.sfirst <= samples && reply.sn > samples) {
    for (let i = samples - reply.sfirst; i < reply.st.length; i++) {
      lane.st.push(reply.st[i]);
      lane.sm.push(reply.sm[i]);
    }
    grew.samples = reply.sn - samples;
  }
  if (reply.cfirst <= lane.chars && reply.cn > lane.chars) {
    const skip = lane.chars - reply.cfirst;
    grew.added = skip ? Array.from(reply.text).slice(skip).join('') : reply.text;
    lane.text += grew.added;
    lane.chars = reply.cn;
  }
  return grew;
}

// At the end of a run its text is read once more as a whole: what streamed may have held half a character.
function takeWholeText(lane, reply) {
  lane.text = reply.text;
  lane.chars = reply.cn;
}

// First UTF-16 unit in which two texts differ, -1 if the shorter one is a beginning of the other.
function firstDifference(a, b, from) {
  const end = Math.min(a.length, b.length);
  for (let i = from || 0; i < end; i++) {
    if (a.charCodeAt(i) !== b.charCodeAt(i)) return i;
  }
  return -1;
}
