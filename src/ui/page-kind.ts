/** What a host of static files serves has no daemon behind it; `daybreak ui export` says so in the document. */

/** Whether this page was exported. */
export const isExported = named("daybreak-exported") !== undefined;

/** Address of the hub that an exported page takes models from; undefined: the usual one. */
export const exportedHub = named("daybreak-hub");

function named(name: string): string | undefined {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
}
