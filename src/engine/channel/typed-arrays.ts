type NumberArray = Uint8Array | Int32Array | Float64Array;

interface ArrayType<Result extends NumberArray> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): Result;
}

export function toBytes(array: NumberArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/**
 * Copies an attachment into a typed array: its bytes may not be aligned, and its buffer is reused.
 * @throws TypeError when the attachment is missing or ends in the middle of a number
 */
export function fromBytes<Result extends NumberArray>(
  type: ArrayType<Result>,
  bytes: Uint8Array | undefined,
): Result {
  if (!bytes) throw new TypeError("lacks an attachment");
  if (bytes.length % type.BYTES_PER_ELEMENT !== 0)
    throw new TypeError("has an attachment that ends in the middle of a number");
  const copy = new ArrayBuffer(bytes.length);
  new Uint8Array(copy).set(bytes);
  return new type(copy);
}

/** @throws TypeError when the property is not an object */
export function propertyOf(value: object, name: string): object {
  const property: unknown = Object.entries(value).find(([key]) => key === name)?.[1];
  if (typeof property !== "object" || property === null) throw new TypeError(`has no ${name}`);
  return property;
}
