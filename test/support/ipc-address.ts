import path from "node:path";

/** Where a daemon can listen that nobody else knows of: a socket in a test's own folder, on Windows a named pipe. */
export function ipcAddress(folder: string, name = "daybreak"): string {
  if (process.platform === "win32") return `\\\\.\\pipe\\${path.basename(folder)}-${name}`;
  return path.join(folder, `${name}.sock`);
}

/** The URL by which a daemon names such a place. */
export function ipcUrl(address: string): string {
  return address.startsWith("/") ? `ipc://${address}` : `ipc:${address.replaceAll("\\", "/")}`;
}
