// The arrays of a network: only their non-zero entries, by rows; axes before the last one are made one.

// Whole numbers packed seven bits to a byte, low bits first, as base64.
function whole(text) {
  const bytes = atob(text);
  const numbers = [];
  let value = 0;
  let scale = 1;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes.charCodeAt(at);
    value += (byte & 127) * scale;
    scale *= 128;
    if (byte < 128) {
      numbers.push(value);
      value = 0;
      scale = 1;
    }
  }
  return numbers;
}

export function unpack(arrays) {
  const entries = Object.entries(arrays).map(([name, { shape, gaps, codes, values }]) => {
    const [steps, kinds] = [whole(gaps), whole(codes)];
    let flat = -1;
    return [name, sparse(shape, steps.map((step) => (flat += step + 1)), kinds.map((kind) => values[kind]))];
  });
  return Object.fromEntries(entries);
}

function sparse(shape, flat, values) {
  const width = shape[shape.length - 1];
  const rows = shape.slice(0, -1).reduce((product, size) => product * size, 1);
  const starts = new Int32Array(rows + 1);
  for (const at of flat) starts[Math.floor(at / width) + 1] += 1;
  for (let row = 0; row < rows; row += 1) starts[row + 1] += starts[row];
  return { shape, rows, width, starts, cols: Int32Array.from(flat, (at) => at % width), values: Float64Array.from(values) };
}

// The non-zero entries of an array, as [flat index, value].
export function entriesOf(array) {
  const found = [];
  for (let row = 0; row < array.rows; row += 1) {
    for (let at = array.starts[row]; at < array.starts[row + 1]; at += 1) found.push([row * array.width + array.cols[at], array.values[at]]);
  }
  return found;
}

// The same array with other values at some flat indices.
export function withEntries(array, changes) {
  const held = new Map(entriesOf(array));
  for (const [at, value] of changes) held.set(at, value);
  const kept = [...held].filter(([, value]) => value !== 0).sort(([one], [two]) => one - two);
  return sparse(array.shape, kept.map(([at]) => at), kept.map(([, value]) => value));
}

export function dense(array, row) {
  const out = new Float64Array(array.width);
  for (let at = array.starts[row]; at < array.starts[row + 1]; at += 1) out[array.cols[at]] = array.values[at];
  return out;
}
