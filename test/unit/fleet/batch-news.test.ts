import { expect, test, vi } from "vitest";
import { BatchNotifications } from "../../../src/fleet/batches/batch-notices.ts";

test("news of a batch are told to whoever has asked for them, and others to whoever looks for new batches", async () => {
  const news = new BatchNotifications();
  const [ofOne, ofTwo, ofOthers] = [vi.fn<() => void>(), vi.fn<() => void>(), vi.fn<() => void>()];
  void news.of("one").then(ofOne);
  void news.of("two").then(ofTwo);
  void news.ofOthers().then(ofOthers);
  news.heard("one");
  await Promise.resolve();
  expect([ofOne, ofTwo, ofOthers].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 0]);
  news.heard("three");
  await Promise.resolve();
  expect([ofOne, ofTwo, ofOthers].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 1]);
  news.heard();
  await Promise.resolve();
  expect([ofOne, ofTwo, ofOthers].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 1]);
});

test("who asks again and again without hearing anything leaves nothing behind", async () => {
  const news = new BatchNotifications();
  const earlier = [news.of("one"), news.ofOthers()];
  const later = [news.of("one"), news.ofOthers()];
  for (const [at, each] of later.entries()) expect(each).not.toBe(earlier[at]);
  news.heard();
  await Promise.all(later);
});
