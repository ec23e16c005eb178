// Fewer points, same picture: the lowest and the highest value of every bucket of the visible window survive, so no
// spike is lost, and zooming in refines. A bucket's size is a power of two and buckets begin at index 0, so they do
// not move while values are added, and nothing shimmers.

// First index whose x is >= value; x is ascending.
/** @param {ArrayLike<number>} x @param {number} value */
export function lowerBound(x, value) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Indices to draw, out of [begin, end), for columns that are drawn together; at most `most` of them.
/** @param {ArrayLike<number>[]} columns @param {number} begin @param {number} end @param {number} most */
export function decimate(columns, begin, end, most) {
  const length = Math.max(0, end - begin);
  if (length <= most) return Array.from({ length }, (_, i) => begin + i);
  let size = 2;
  while (size * (most / 2 - 2) < length) size *= 2;
  for (;;) {
    const kept = bucketExtremes(columns, begin, end, size);
    if (kept.length <= most) return kept;
    size *= 2;
  }
}

// Indices of the lowest and highest value of every column in every bucket, and both ends.
/** @param {ArrayLike<number>[]} columns @param {number} begin @param {number} end @param {number} size */
function bucketExtremes(columns, begin, end, size) {
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
    for (const index of found) if (index > kept[kept.length - 1]) kept.push(index);
  }
  if (kept[kept.length - 1] !== end - 1) kept.push(end - 1);
  return kept;
}
