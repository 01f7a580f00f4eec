/** Content security policy of the page, shared by the daemon, the page's service worker and exported pages. */

/** Maximum number of other daemons and MCP servers of one page, which must fit in a header. */
export const MAX_CONNECT_ORIGINS = 20;

/** Origins of the default hub and of its large files. */
export const HUB_ORIGINS = ["https://huggingface.co", "https://*.huggingface.co", "https://*.hf.co"] as const;

/** Hash of the script in tool-frame.html. The page's policy also applies to its frames. */
const TOOL_FRAME_SCRIPT = "'sha256-aqCDQFMJJeLfQ/56CxKGaIrkCdMX99f+NzlsxvQr4S8='";

/** Start of the directive for connections, to which further origins are appended. */
const CONNECT_SOURCES = "connect-src 'self' blob:";

/**
 * Returns the Content-Security-Policy of the page. It allows the engine in workers, and never runs a model's text as a
 * script.
 * @param connect origins of other servers that the page may connect to
 */
export function pagePolicy(connect: readonly string[]): string {
  return `${elementPolicy(connect)}; frame-ancestors 'none'`;
}

/** Returns the policy for a meta element, without directives that have no effect there. */
export function elementPolicy(connect: readonly string[]): string {
  const connectDirective = [CONNECT_SOURCES, ...connect].join(" ");
  return `default-src 'none'; script-src 'self' 'wasm-unsafe-eval' ${TOOL_FRAME_SCRIPT}; worker-src 'self' blob:; style-src 'self'; ${connectDirective}; img-src 'self' data: blob:; frame-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'`;
}

/** Adds origins that the page may connect to, in a policy or in a document that contains one. */
export function withConnectSources(text: string, connect: readonly string[]): string {
  return text.replace(CONNECT_SOURCES, [CONNECT_SOURCES, ...connect].join(" "));
}

/** Parses the query parameter `connect` of the page's address. */
export function parseOrigins(query: string): string[] {
  return query.split(" ").filter((origin) => origin !== "");
}

/**
 * Origin with a host name or an IP address. Stricter than URLs, whose hosts may contain characters that end a
 * directive.
 */
const ORIGIN = /^https?:\/\/(?:(?:\*\.)?[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/;

/** True for an origin that may be added to a policy. "https://*.example.com" stands for all subdomains. */
export function isConnectOrigin(text: string): boolean {
  // Browsers differ in how they normalize a URL with an asterisk.
  const sample = text.replace("://*.", "://any.");
  return ORIGIN.test(text) && URL.canParse(sample) && new URL(sample).origin === sample;
}
