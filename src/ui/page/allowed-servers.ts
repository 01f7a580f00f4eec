const KEY = "daybreak-servers";

/** Lets the page connect to another server, by its origin: the page's policy names those that its user has named. */
export function allowServer(origin: string): void {
  const servers = new Set([...allowedServers(), origin]);
  localStorage.setItem(KEY, JSON.stringify([...servers]));
  loadWithServers();
}

/** Loads the page again if the policy that it came with lacks a server. */
export function loadWithServers(): void {
  const wanted = allowedServers().join(" ");
  const address = new URL(location.href);
  if ((address.searchParams.get("connect") ?? "") === wanted) return;
  address.searchParams.set("connect", wanted);
  location.replace(address);
}

function allowedServers(): string[] {
  const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
  return Array.isArray(stored) ? stored.filter((each) => typeof each === "string") : [];
}
