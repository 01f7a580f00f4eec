/** What serves the API that made a block alone: it says nothing to a model. */
const OPAQUE = new Set([
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

/** An image or a file as base64, which no model can read as text. Shorter ones may be words. */
const BASE64 = /^(?:data:[^,]{0,100},)?[\w+/=-]{512,}$/;

/**
 * A part of an earlier conversation that this daemon has no form for, such as a search that another server made, as a short
 * text for the model: `[web_search_call {"query":"weather"}]`, or `[compaction] Summary.` if it holds one text alone.
 * IDs, encrypted text and base64 are left out.
 */
export function historyText({
  type,
  ...part
}: { readonly type: string } & Readonly<Record<string, unknown>>): string {
  const content = readable(part);
  if (content === undefined) return `[${type}]`;
  const text = onlyText(content);
  return text === undefined ? `[${type} ${JSON.stringify(content)}]` : `[${type}] ${text}`;
}

/** Undefined if nothing of it is left. */
function readable(value: unknown): unknown {
  if (typeof value === "string") return value === "" || BASE64.test(value) ? undefined : value;
  if (Array.isArray(value)) {
    const items = value.map(readable).filter((item) => item !== undefined);
    return items.length > 0 ? items : undefined;
  }
  if (typeof value !== "object" || value === null) return value ?? undefined;
  const fields = Object.entries(value)
    .filter(([key, field]) => !OPAQUE.has(key) && !(key === "type" && isFormat(field)))
    .map(([key, field]): [string, unknown] => [key, readable(field)])
    .filter(([, field]) => field !== undefined);
  return fields.length > 0 ? Object.fromEntries(fields) : undefined;
}

/** Types such as text and web_search_result say how a part is written; others, such as click, what was done. */
function isFormat(type: unknown): boolean {
  return type === "text" || (typeof type === "string" && type.includes("_"));
}

/** The text of what holds nothing else. */
function onlyText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    const texts = value.map(onlyText);
    return texts.every((text) => text !== undefined) ? texts.join("\n") : undefined;
  }
  const fields = typeof value === "object" && value !== null ? Object.values(value) : [];
  return fields.length === 1 ? onlyText(fields[0]) : undefined;
}
