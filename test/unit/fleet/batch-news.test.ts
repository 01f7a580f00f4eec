import { expect, test, vi } from "vitest";
import { BatchNotifications } from "../../../src/fleet/batches/batch-notices.ts";

test("notifies the waiter of the changed batch, or the waiter for other batches", async () => {
  const news = new BatchNotifications();
  const [ofOne, ofTwo, ofOthers] = [vi.fn<() => void>(), vi.fn<() => void>(), vi.fn<() => void>()];
  void news.next("one").then(ofOne);
  void news.next("two").then(ofTwo);
  void news.nextOther().then(ofOthers);
  news.notify("one");
  await Promise.resolve();
  expect([ofOne, ofTwo, ofOthers].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 0]);
  news.notify("three");
  await Promise.resolve();
  expect([ofOne, ofTwo, ofOthers].map(({ mock }) => mock.calls.length)).toEqual([1, 0, 1]);
  news.notify();
  await Promise.resolve();
  expect([ofOne, ofTwo, ofOthers].map(({ mock }) => mock.calls.length)).toEqual([1, 1, 1]);
});

test("replaces promises that were requested again without a notification", async () => {
  const news = new BatchNotifications();
  const earlier = [news.next("one"), news.nextOther()];
  const later = [news.next("one"), news.nextOther()];
  for (const [at, each] of later.entries()) expect(each).not.toBe(earlier[at]);
  news.notify();
  await Promise.all(later);
});
