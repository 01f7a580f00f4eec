export type IdKind = "file" | "batch" | "msgbatch" | "batch_req";
export type NewId = (kind: IdKind) => string;

/** An id of the forms that clients know: "file-…", "batch_…", "msgbatch_…". */
export function newId(kind: IdKind): string {
  const random = crypto.randomUUID().replaceAll("-", "");
  return `${kind}${kind === "file" ? "-" : "_"}${random}`;
}
