import zlib from "node:zlib";

/** Red, green and blue, 0 to 255. */
type Color = readonly [number, number, number];

/** A PNG, by default of a color gradient: the smallest image that decoders take for a real one. */
export function tinyPng(
  width: number,
  height: number,
  colorAt: (x: number, y: number) => Color = (x, y) => [(x * 7) & 255, (y * 7) & 255, 128],
): Uint8Array<ArrayBuffer> {
  const rowBytes = 1 + width * 3; // a filter type, then red, green and blue
  const rows = Buffer.alloc(height * rowBytes);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) rows.set(colorAt(x, y), y * rowBytes + 1 + x * 3);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 2], 8); // bits of a channel, RGB
  return new Uint8Array(
    Buffer.concat([
      Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
      chunk("IHDR", header),
      chunk("IDAT", zlib.deflateSync(rows)),
      chunk("IEND", Buffer.alloc(0)),
    ]),
  );
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(zlib.crc32(body), body.length + 4);
  return framed;
}
