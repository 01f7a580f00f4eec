import type { Page, PageQuery } from "../../batches/batch-store.ts";
import { ServiceError } from "../../errors/service-error.ts";

interface Listed {
  readonly id: string;
  readonly owner: string;
  readonly createdAt: number;
}

/** One page of what a viewer sees of a list. */
export function pageOf<Item extends Listed>(all: readonly Item[], query: PageQuery): Page<Item> {
  const { viewer, limit, descending, after, before } = query;
  const seen = all.filter(({ owner }) => viewer === undefined || owner === viewer);
  const listed = seen.toSorted(
    (one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1),
  );
  if (descending) listed.reverse();
  if (after !== undefined) {
    const start = indexOf(listed, "after", after) + 1;
    return { items: listed.slice(start, start + limit), hasMore: start + limit < listed.length };
  }
  if (before !== undefined) {
    const end = indexOf(listed, "before", before);
    return { items: listed.slice(Math.max(0, end - limit), end), hasMore: end > limit };
  }
  return { items: listed.slice(0, limit), hasMore: listed.length > limit };
}

function indexOf(listed: readonly Listed[], param: string, cursor: string): number {
  const index = listed.findIndex(({ id }) => id === cursor);
  if (index >= 0) return index;
  const message = `${param}: nothing in the list has the id "${cursor.slice(0, 100)}".`;
  throw new ServiceError("invalid_parameter", message, { param });
}
