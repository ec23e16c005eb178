// Fewer points, same picture: in every bucket of the visible window the lowest and the highest value survive, so a
// spike is never lost, and zooming in refines. All lines that share an axis keep the same places: A and B can then
// be read by hover at the same token. A bucket's size is a power of two and begins at place 0, so that buckets keep
// still while values are added: nothing shimmers.

// First place whose x is >= value; x grows.
function lowerBound(x, value) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Places to draw, out of [begin, end), for columns that are drawn together; at most `most` of them.
function places(columns, begin, end, most) {
  const count = Math.max(0, end - begin);
  if (count <= most) return Array.from({ length: count }, (_, i) => begin + i);
  let size = 2;
  while (size * (most / 2 - 2) < count) size *= 2;
  for (;;) {
    const kept = extremes(columns, begin, end, size);
    if (kept.length <= most) return kept;
    size *= 2;
  }
}

// The lowest and highest place of every column in every bucket, and both ends.
function extremes(columns, begin, end, size) {
  const kept = [begin];
  for (let at = begin - (begin % size); at < end; at += size) {
    const from = Math.max(at, begin), to = Math.min(at + size, end), found = [];
    for (const column of columns) {
      const stop = Math.min(to, column.length);
      if (from >= stop) continue;
      let low = from, high = from;
      for (let i = from + 1; i < stop; i++) {
        if (column[i] < column[low]) low = i;
        else if (column[i] > column[high]) high = i;
      }
      found.push(low, high);
    }
    found.sort((a, b) => a - b);
    for (const place of found) if (place > kept[kept.length - 1]) kept.push(place);
  }
  if (kept[kept.length - 1] !== end - 1) kept.push(end - 1);
  return kept;
}
