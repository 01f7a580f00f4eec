const HEADER_BYTES = 54;
const INFO_BYTES = 40;
const BITS_PER_PIXEL = 24;
const WHITE = 255;

/** Pixels from the top left, four bytes each: red, green, blue and opacity, not premultiplied. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8ClampedArray | Uint8Array;
}

/** A BMP file of 24 bits per pixel, which is the fastest to read. What is transparent shows white, as on a page. */
export function toBmp({ width, height, data }: Pixels): Uint8Array<ArrayBuffer> {
  const rowBytes = Math.ceil((width * 3) / 4) * 4;
  const bmp = new Uint8Array(HEADER_BYTES + rowBytes * height);
  const view = new DataView(bmp.buffer);
  bmp.set([0x42, 0x4d]);
  view.setUint32(2, bmp.length, true);
  view.setUint32(10, HEADER_BYTES, true);
  view.setUint32(14, INFO_BYTES, true);
  view.setInt32(18, width, true);
  // Rows from the top have a negative height.
  view.setInt32(22, -height, true);
  view.setUint16(26, 1, true);
  view.setUint16(28, BITS_PER_PIXEL, true);
  let from = 0;
  for (let row = 0; row < height; row += 1) {
    let to = HEADER_BYTES + row * rowBytes;
    for (let column = 0; column < width; column += 1) {
      const opacity = data[from + 3]!;
      bmp[to++] = onWhite(data[from + 2]!, opacity);
      bmp[to++] = onWhite(data[from + 1]!, opacity);
      bmp[to++] = onWhite(data[from]!, opacity);
      from += 4;
    }
  }
  return bmp;
}

function onWhite(color: number, opacity: number): number {
  return opacity === WHITE ? color : Math.round((color * opacity + WHITE * (WHITE - opacity)) / WHITE);
}
