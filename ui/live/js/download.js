// The series of a run as a CSV file, and the figure as a PNG.

const CSV_COLUMNS = ['arm', 'series', 'index', 'seconds', 'latency_s', 'kv_sliding_bytes', 'kv_full_bytes', 'memory_bytes'];

// One line for each token (or pass) of the first run, and one for each sample of memory.
/**
 * @param {{ unit: string, arms: { name: string }[] }} head @param {Pick<Live.Series, 't' | 'lat' | 'kvs' | 'kvf' | 'kvl' | 'kvt' | 'kvi' | 'st' | 'sm'>[]} series
 */
export function csvOf(head, series) {
  const lines = [CSV_COLUMNS.join(',')], step = head.unit === 'forward' ? 'pass' : 'token';
  head.arms.forEach(({ name }, a) => {
    const { t, lat, kvs, kvf, kvl, kvt, kvi, st, sm } = series[a];
    const full = i => [kvf, kvl, kvt, kvi].reduce((sum, column) => sum + (column[i] || 0), 0);
    t.forEach((seconds, i) => lines.push([name, step, i, seconds, lat[i], kvs[i], full(i), ''].join(',')));
    st.forEach((seconds, i) => lines.push([name, 'sample', i, seconds, '', '', '', sm[i]].join(',')));
  });
  return lines.join('\n') + '\n';
}

/** @param {string} text @param {string} name */
export function saveText(text, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
