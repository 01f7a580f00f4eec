/** Nested tables, as in TOML. */
export interface Tree {
  [key: string]: unknown;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined if any table on the way is missing. */
export function getPath(tree: Tree, keys: readonly string[]): unknown {
  let value: unknown = tree;
  for (const key of keys) value = isTree(value) ? value[key] : undefined;
  return value;
}

/** Creates the tables on the way. */
export function setPath(tree: Tree, keys: readonly string[], value: unknown): void {
  const [key, ...rest] = keys;
  if (key === undefined) return;
  if (rest.length === 0) {
    tree[key] = value;
    return;
  }
  const child = tree[key];
  const branch = isTree(child) ? child : {};
  tree[key] = branch;
  setPath(branch, rest, value);
}
