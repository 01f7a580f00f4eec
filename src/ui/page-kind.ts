/** `daybreak ui export` marks the page as exported: it is served by a static host without a daemon. */

/** True if this page was exported. */
export const isExported = metaContent("daybreak-exported") !== undefined;

/** Address of the hub for an exported page; undefined for the default hub. */
export const exportedHub = metaContent("daybreak-hub");

function metaContent(name: string): string | undefined {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
}
