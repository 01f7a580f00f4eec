/**
 * The fields of an answer that a request names, nested ones by "timings/prompt_n", which is their name in the result, too.
 * Names that the answer does not have are left out.
 * @param names undefined or empty: all fields
 */
export function selectFields(answer: object, names: readonly string[] | undefined): object {
  if (names === undefined || names.length === 0) return answer;
  const found = names.map((name): [string, unknown] => [name, valueAt(answer, name.split("/"))]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

function valueAt(answer: object, keys: readonly string[]): unknown {
  let value: unknown = answer;
  for (const key of keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}
