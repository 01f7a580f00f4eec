/** Fields with a meaning only for the API that created a block, not for a model. */
const OPAQUE_FIELDS = new Set([
  "id",
  "status",
  "call_id",
  "tool_use_id",
  "approval_request_id",
  "cache_control",
  "caller",
  "created_by",
  "signature",
  "fingerprint",
  "encrypted_content",
  "encrypted_index",
  "encrypted_stdout",
]);

/** Base64 of an image or a file, which no model can read as text. Shorter matches may be words. */
const BASE64 = /^(?:data:[^,]{0,100},)?[\w+/=-]{512,}$/;

/**
 * Renders a part of a conversation that has no type here, such as a web search by another server, as short text for the
 * model: `[web_search_call {"query":"weather"}]`, or `[compaction] Summary.` if it contains only one text. IDs,
 * encrypted text and base64 are left out.
 */
export function historyText({
  type,
  ...part
}: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  const content = withoutOpaque(part);
  if (content === undefined) return `[${type}]`;
  const text = singleText(content);
  return text === undefined ? `[${type} ${JSON.stringify(content)}]` : `[${type}] ${text}`;
}

/** Removes opaque fields from a value; undefined if nothing is left. */
function withoutOpaque(value: unknown): unknown {
  if (typeof value === "string") return value === "" || BASE64.test(value) ? undefined : value;
  if (Array.isArray(value)) {
    const items = value.map(withoutOpaque).filter((item) => item !== undefined);
    return items.length > 0 ? items : undefined;
  }
  if (typeof value !== "object" || value === null) return value ?? undefined;
  const fields = Object.entries(value)
    .filter(([key, field]) => !OPAQUE_FIELDS.has(key) && !(key === "type" && isFormat(field)))
    .map(([key, field]): [string, unknown] => [key, withoutOpaque(field)])
    .filter(([, field]) => field !== undefined);
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}

/** True for types of content, such as text and web_search_result; false for actions, such as click. */
function isFormat(type: unknown): boolean {
  return type === "text" || (typeof type === "string" && type.includes("_"));
}

/** Returns the text of a value that contains only one; undefined otherwise. */
function singleText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    const texts = value.map(singleText);
    return texts.every((text) => text !== undefined) ? texts.join("\n") : undefined;
  }
  const fields = typeof value === "object" && value !== null ? Object.values(value) : [];
  return fields.length === 1 ? singleText(fields[0]) : undefined;
}
