// Colour maps: a few published colours each, interpolated linearly.

const STOPS = {
  viridis: "440154 472d7b 3b528b 2c728e 21918c 28ae80 5ec962 addc30 fde725",
  magma: "000004 1c1044 4f127b 812581 b5367a e55064 fb8761 fec287 fcfdbf",
  cividis: "00224e 123570 3b496c 575d6d 707173 8a8678 a59c74 c3b369 e1cc55 fee838",
  greys: "0b0b0b f7f7f7",
  "blue–red": "2f5fa6 7ea6d4 c6d8ea f4f2ef ecc4b2 d6876c a6332f",
};

export const names = Object.keys(STOPS);

const tables = new Map();

/** 256 colours as bytes: red, green, blue. */
export function table(name) {
  if (tables.has(name)) return tables.get(name);
  const stops = STOPS[name].split(" ").map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const bytes = new Uint8Array(768);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    for (let part = 0; part < 3; part++) {
      bytes[3 * i + part] = Math.round(stops[low][part] + (stops[low + 1][part] - stops[low][part]) * (place - low));
    }
  }
  tables.set(name, bytes);
  return bytes;
}

/** The range to draw: all finite values, or without the lowest and the highest hundredth. */
export function range(values, robust) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low && value > -Infinity) low = value;
    if (value > high && value < Infinity) high = value;
  }
  if (!(low <= high)) return [0, 1];
  if (robust && high > low) {
    const bins = new Uint32Array(2048);
    let total = 0;
    for (const value of values) {
      if (Number.isFinite(value)) { bins[Math.min(2047, Math.floor(((value - low) / (high - low)) * 2048))]++; total++; }
    }
    const at = (share) => {
      let sum = 0;
      for (let i = 0; i < 2048; i++) { sum += bins[i]; if (sum >= share * total) return i; }
      return 2047;
    };
    const [first, last] = [at(0.01), at(0.99)];
    if (last > first) return [low + (first / 2048) * (high - low), low + ((last + 1) / 2048) * (high - low)];
  }
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}
