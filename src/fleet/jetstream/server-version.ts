/** Whether a NATS server is of this version or a newer one. */
export function isAtLeast(version: string, least: readonly [number, number, number]): boolean {
  const parts = version.split(/[.-]/, least.length).map(Number);
  for (const [at, wanted] of least.entries()) {
    const part = parts[at] ?? 0;
    if (part !== wanted) return part > wanted;
  }
  return true;
}
