/** Sends a body as JSON. */
export function postJson(address: string | URL, body: unknown, signal?: AbortSignal): Promise<Response> {
  return fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
}
