import type { SQLInputValue } from "node:sqlite";
import { ServiceError } from "../../errors/service-error.ts";
import type { Page, PageQuery } from "../batch-store.ts";
import type { Viewer } from "../batch.ts";
import type { Database, Row } from "./database.ts";

/** One page of the rows of a table that a viewer sees and that fulfill a condition. */
export function selectPage<Item>(
  database: Database,
  table: "files" | "batches",
  query: PageQuery,
  condition: { readonly sql: string; readonly values: readonly SQLInputValue[] },
  toItem: (row: Row) => Item,
): Page<Item> {
  const { viewer, limit, descending, after, before } = query;
  const cursor = after ?? before;
  const isBackward = after === undefined && before !== undefined;
  // Rows right before one are found in the opposite order.
  const goesDown = descending !== isBackward;
  const position = cursor === undefined ? undefined : seqOf(database, table, cursor, viewer, isBackward);
  const rows = database.all(
    `SELECT * FROM ${table} WHERE ${condition.sql} AND (?1 IS NULL OR owner = ?1)
      AND (?2 IS NULL OR ${goesDown ? "seq < ?2" : "seq > ?2"}) ORDER BY seq ${goesDown ? "DESC" : "ASC"} LIMIT ?3`,
    viewer ?? null,
    position ?? null,
    limit + 1,
    ...condition.values,
  );
  const items = rows.slice(0, limit).map(toItem);
  return { items: isBackward ? items.toReversed() : items, hasMore: rows.length > limit };
}

function seqOf(database: Database, table: string, id: string, viewer: Viewer, isBackward: boolean): number {
  const row = database.get(
    `SELECT seq FROM ${table} WHERE id = ?1 AND (?2 IS NULL OR owner = ?2)`,
    id,
    viewer ?? null,
  );
  if (row) return Number(row["seq"]);
  const param = isBackward ? "before" : "after";
  throw new ServiceError(
    "invalid_parameter",
    `${param}: nothing in the list has the id "${id.slice(0, 100)}".`,
    {
      param,
    },
  );
}
