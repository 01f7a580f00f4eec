import { z } from "zod";
import type { DaemonAddress } from "./daemon-address.ts";
import type { DaemonClient } from "./daemon-client.ts";

const statusSchema = z.object({ http_endpoint: z.string() });

/** Where other programs of this machine reach the daemon over HTTP, without a slash at the end. */
export async function httpAddress(
  client: DaemonClient,
  { endpoints, named }: DaemonAddress,
): Promise<string> {
  const [first] = endpoints;
  if (named && first?.kind === "http") return withoutSlash(first.url);
  const { http_endpoint: address } = await client.json(statusSchema, "GET", "/api/system/status");
  const url = new URL(address);
  // Browsers give threads and WebAssembly to pages of this machine only under its own name.
  if (["0.0.0.0", "[::]"].includes(url.hostname)) url.hostname = "127.0.0.1";
  return withoutSlash(url);
}

function withoutSlash(url: URL): string {
  return url.href.replace(/\/$/, "");
}
