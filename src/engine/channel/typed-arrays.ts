type NumberArray = Uint8Array | Int32Array | Float64Array;

interface ArrayType<Result extends NumberArray> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): Result;
}

export function toBytes(array: NumberArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/**
 * A copy of an attachment as numbers: it need not lie where such numbers may, and its memory is used again.
 * @throws TypeError when there is no attachment, or its bytes are not a whole number of numbers
 */
export function fromBytes<Result extends NumberArray>(
  type: ArrayType<Result>,
  bytes: Uint8Array | undefined,
): Result {
  if (!bytes) throw new TypeError("lacks an attachment");
  if (bytes.length % type.BYTES_PER_ELEMENT !== 0) throw new TypeError("has part of a number");
  const copy = new ArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return new type(copy);
}

/** A property that is an object. @throws TypeError when it is not */
export function propertyOf(value: object, name: string): object {
  const property: unknown = Object.entries(value).find(([key]) => key === name)?.[1];
  if (typeof property !== "object" || property === null) throw new TypeError(`has no ${name}`);
  return property;
}
