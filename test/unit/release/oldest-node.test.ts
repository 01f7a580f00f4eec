import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { z } from "zod";

const Engines = z.object({ node: z.string().optional() }).optional();
const Lock = z.object({
  packages: z.record(z.string(), z.object({ dev: z.boolean().optional(), engines: Engines })),
});

test("no dependency needs a newer Node than Daybreak, because yarn would reject the installation", async () => {
  const lock = await readFile(new URL("../../../package-lock.json", import.meta.url), "utf8");
  const { "": daybreak, ...others } = Lock.parse(JSON.parse(lock)).packages;
  const ours = oldest(daybreak?.engines?.node ?? "");
  expect(ours).toBeGreaterThan(0);
  const newer = Object.entries(others).filter(
    ([, { dev, engines }]) => dev !== true && engines?.node !== undefined && oldest(engines.node) > ours,
  );
  expect(newer.map(([name, { engines }]) => `${name} needs Node ${engines?.node}`)).toEqual([]);
});

/** The oldest version of a range's last alternative, as a number: 20018001 of ">=18 <19 || >= 20.18.1". */
function oldest(range: string): number {
  const version = /(\d+)(?:\.(\d+))?(?:\.(\d+))?\D*$/.exec(range.split("||").at(-1) ?? "");
  const [major = 0, minor = 0, patch = 0] = (version ?? []).slice(1).map((part) => Number(part ?? 0));
  return (major * 1000 + minor) * 1000 + patch;
}
