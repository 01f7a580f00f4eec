/** An id of the forms that clients know: "file-…", "batch_…", "msgbatch_…". */
export function newId(kind: "file" | "batch" | "msgbatch" | "batch_req"): string {
  const random = crypto.randomUUID().replaceAll("-", "");
  return `${kind}${kind === "file" ? "-" : "_"}${random}`;
}
