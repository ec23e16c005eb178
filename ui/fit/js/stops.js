// Where a slider with logarithmic steps stops.

/** 1, 2, 3, 4, 6, 8, 12, ... up to `most`, which is the last. @param {number} most */
export function stopsTo(most) {
  const stops = [];
  for (let low = 1; low < most; low *= 2) stops.push(low, ...(low > 1 && low * 1.5 < most ? [low * 1.5] : []));
  return [...stops.filter((stop) => stop < most), most];
}

/** The place of the stop that is nearest to a value, by their ratio. @param {number[]} stops @param {number} value */
export function nearest(stops, value) {
  const away = (stop) => Math.abs(Math.log(stop / Math.max(1, value)));
  return stops.reduce((best, stop, at) => (away(stop) < away(stops[best]) ? at : best), 0);
}
