/** A number in the header of a GGUF file: its position and size in bytes. */
export interface Field {
  /** Name for people and for recipes: "type of key 3", "offset of tensor 0". */
  readonly name: string;
  readonly offset: number;
  readonly size: number;
}

const STRING = 8;
const ARRAY = 9;
/** Bytes of scalar values by their type's number. */
const SIZES = new Map([
  [0, 1],
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 4],
  [5, 4],
  [6, 4],
  [7, 1],
  [10, 8],
  [11, 8],
  [12, 8],
]);

/** Finds all numbers in the header of a sound GGUF file: counts, lengths, types, values, dimensions, offsets. */
export function mapFields(file: Buffer): readonly Field[] {
  return new Mapper(file).map();
}

class Mapper {
  readonly #file: Buffer;
  readonly #fields: Field[] = [];
  #at = 0;

  constructor(file: Buffer) {
    this.#file = file;
  }

  map(): readonly Field[] {
    this.#take("magic", 4);
    this.#take("version", 4);
    const tensors = this.#take("number of tensors", 8);
    const keys = this.#take("number of keys", 8);
    for (let key = 0; key < keys; key++) this.#mapKey(`key ${key}`);
    for (let tensor = 0; tensor < tensors; tensor++) this.#mapTensor(`tensor ${tensor}`);
    return this.#fields;
  }

  #mapKey(key: string): void {
    this.#text(key);
    const type = this.#take(`type of ${key}`, 4);
    if (type === STRING) this.#text(`value of ${key}`);
    else if (type === ARRAY) this.#mapArray(key);
    else this.#take(`value of ${key}`, SIZES.get(type) ?? 0);
  }

  #mapArray(key: string): void {
    const type = this.#take(`element type of ${key}`, 4);
    const length = this.#take(`number of elements of ${key}`, 8);
    for (let index = 0; index < length; index++) {
      // Vocabularies: the first elements stand for all.
      const isMapped = index < 3;
      if (type === STRING) {
        const bytes = Number(this.#file.readBigUInt64LE(this.#at));
        if (isMapped) this.#fields.push(this.#field(`length of element ${index} of ${key}`, 8));
        this.#at += 8 + bytes;
      } else {
        const size = SIZES.get(type) ?? 0;
        if (isMapped) this.#fields.push(this.#field(`element ${index} of ${key}`, size));
        this.#at += size;
      }
    }
  }

  #mapTensor(tensor: string): void {
    this.#text(tensor);
    const dimensions = this.#take(`number of dimensions of ${tensor}`, 4);
    for (let index = 0; index < dimensions; index++) this.#take(`dimension ${index} of ${tensor}`, 8);
    this.#take(`type of ${tensor}`, 4);
    this.#take(`offset of ${tensor}`, 8);
  }

  #text(owner: string): void {
    const length = this.#take(`length of ${owner}`, 8);
    this.#at += length;
  }

  /** Takes a field down and reads it. */
  #take(name: string, size: number): number {
    const field = this.#field(name, size);
    this.#fields.push(field);
    this.#at += size;
    return Number(readField(this.#file, field));
  }

  #field(name: string, size: number): Field {
    return { name, offset: this.#at, size };
  }
}

export function readField(file: Buffer, { offset, size }: Field): bigint {
  let value = 0n;
  for (let index = size - 1; index >= 0; index--) value = (value << 8n) | BigInt(file[offset + index] ?? 0);
  return value;
}

/** Writes a number into a field; what does not fit is cut off. */
export function writeField(file: Buffer, { offset, size }: Field, value: bigint): void {
  let rest = BigInt.asUintN(size * 8, value);
  for (let index = 0; index < size; index++) {
    file[offset + index] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}
