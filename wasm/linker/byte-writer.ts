/** Bytes of a number as unsigned LEB128, the shortest form. */
export function uleb(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest % 0x80;
    rest = Math.floor(rest / 0x80);
    bytes.push(rest > 0 ? low | 0x80 : low);
  } while (rest > 0);
  return bytes;
}

/** Width of every relocatable number in an object file, so that linking moves nothing. */
const PADDED_LENGTH = 5;

/** Overwrites a five-byte unsigned LEB128 number in place. */
export function patchPaddedUleb(bytes: Uint8Array, offset: number, value: number): void {
  let rest = value;
  for (let index = 0; index < PADDED_LENGTH; index++) {
    const low = rest % 0x80;
    rest = Math.floor(rest / 0x80);
    bytes[offset + index] = index < PADDED_LENGTH - 1 ? low | 0x80 : low;
  }
  if (rest !== 0) throw new RangeError(`${value} does not fit the relocated field`);
}

export function concatBytes(parts: readonly (Uint8Array | readonly number[])[]): Uint8Array<ArrayBuffer> {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const result = new Uint8Array(length);
  let offset = 0;
  for (const part of parts) {
    result.set(part, offset);
    offset += part.length;
  }
  return result;
}

/** A vector as WebAssembly writes it: the count, then the items. */
export function vector(items: readonly (Uint8Array | readonly number[])[]): Uint8Array {
  return concatBytes([uleb(items.length), ...items]);
}

/** A string or byte blob with its length before it. */
export function sized(bytes: Uint8Array): Uint8Array {
  return concatBytes([uleb(bytes.length), bytes]);
}

/** A text with its length before it, such as a name. */
export function sizedText(text: string): Uint8Array {
  return sized(new TextEncoder().encode(text));
}

/** A section of a module. */
export function section(id: number, content: Uint8Array): Uint8Array {
  return concatBytes([[id], uleb(content.length), content]);
}
