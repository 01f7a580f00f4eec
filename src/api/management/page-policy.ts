/** What the page may load and ask; the daemon, the page's service worker and an exported page say the same. */

/** Other daemons and MCP servers of one page: more than anybody has, and few enough for a header. */
export const MAX_SERVERS = 20;

/** The usual hub, and where it keeps large files. */
export const HUB_ORIGINS = ["https://huggingface.co", "https://*.huggingface.co", "https://*.hf.co"] as const;

/** The script of tool-frame.html, which the page puts into a frame: that has the page's policy besides its own. */
const TOOL_FRAME_SCRIPT = "'sha256-aqCDQFMJJeLfQ/56CxKGaIrkCdMX99f+NzlsxvQr4S8='";

/** Where the policy names whom the page may ask; further origins follow. */
const ASKED = "connect-src 'self' blob:";

/**
 * Content-Security-Policy of the page. It may also run the engine, in workers, and a model's text can never run as a script.
 * @param connect other servers that the page may ask, as origins
 */
export function pagePolicy(connect: readonly string[]): string {
  return `${elementPolicy(connect)}; frame-ancestors 'none'`;
}

/** The same for an element of a document, where what is left out here has no effect. */
export function elementPolicy(connect: readonly string[]): string {
  const asked = [ASKED, ...connect].join(" ");
  return `default-src 'none'; script-src 'self' 'wasm-unsafe-eval' ${TOOL_FRAME_SCRIPT}; worker-src 'self' blob:; style-src 'self'; ${asked}; img-src 'self' data: blob:; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'`;
}

/** A policy, or a document with one, that lets the page ask further origins. */
export function withServers(text: string, connect: readonly string[]): string {
  return text.replace(ASKED, [ASKED, ...connect].join(" "));
}

/** The origins in the query `connect` of the page's address. */
export function serversOf(query: string): string[] {
  return query.split(" ").filter((origin) => origin !== "");
}

/** A name, an IPv4 or an IPv6 address, perhaps with a port; addresses know hosts with characters that end a directive. */
const ORIGIN = /^https?:\/\/(?:(?:\*\.)?[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/;

/** Nothing else may get into a policy. "https://*.example.com" stands for all hosts below that one. */
export function isOrigin(text: string): boolean {
  // Browsers do not agree on how an address with an asterisk is written.
  const one = text.replace("://*.", "://any.");
  return ORIGIN.test(text) && URL.canParse(one) && new URL(one).origin === one;
}
