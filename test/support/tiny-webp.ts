/** 16 × 12 pixels: red on the left, blue on the right, the lower half transparent. Without loss. */
const LOSSLESS = "UklGRiwAAABXRUJQVlA4TCAAAAAvD8ACEBcQ8y8gKPJ/tPkP+EAgQJg0qVRCRP8noPRhBw==";
/** The same with loss, its opacity in a chunk of its own. */
const LOSSY =
  "UklGRmoAAABXRUJQVlA4WAoAAAAQAAAADwAACwAAQUxQSBIAAAABDzD/ERFCLJjkL903hoj+54xWUDggMgAAAJABAJ0BKhAADAACgEIloAJ0ugADmAD+8n//+tV//4Vr/uwXYH/qs/+9gSH/vYD3AAAA";

const HEADER_BYTES = 12;
const EXTENDED_CHUNK_BYTES = 18;

export const WEBP_SIZE = { width: 16, height: 12 };

export function losslessWebp(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(LOSSLESS, "base64"));
}

export function lossyWebp(): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(LOSSY, "base64"));
}

/** An animation of two frames, each the image with loss. */
export function animatedWebp(): Uint8Array<ArrayBuffer> {
  const picture = lossyWebp().subarray(HEADER_BYTES + EXTENDED_CHUNK_BYTES);
  const place = [0, 0, 0, 0, 0, 0, 15, 0, 0, 11, 0, 0, 100, 0, 0, 0];
  const frame = chunk("ANMF", [...place, ...picture]);
  const extended = chunk("VP8X", [0x12, 0, 0, 0, 15, 0, 0, 11, 0, 0]);
  const animation = chunk("ANIM", [255, 255, 255, 255, 0, 0]);
  return Uint8Array.from(
    chunk("RIFF", [...Buffer.from("WEBP"), ...extended, ...animation, ...frame, ...frame]),
  );
}

function chunk(name: string, data: readonly number[]): number[] {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(data.length);
  return [...Buffer.from(name), ...length, ...data];
}
