// The files of the pages that HAProxy answers with instead of its own, in the state directory: HAProxy refuses its whole file if
// one is missing, also after a reboot without the agent. Each is named by the content of its ConfigMap, so that the files of a
// configuration never change. Pure.
// Why: docs/design/decisions/0064-error-pages.md

import type { NamedText } from '../../host/file-set.ts';
import type { ErrorPages, LoadBalancer } from '../../model/load-balancer.ts';
import { pageFile } from './error-pages.ts';

/** The text of checked pages: JSON, a list of statuses with their bodies; undefined if they are not known. */
export type PagesText = (name: string, fingerprint: string) => string | undefined;

export function pageTexts(
  all: readonly ErrorPages[],
  folder: string,
  pages: PagesText,
): readonly NamedText[] {
  return all.flatMap((each) =>
    each.statuses.map((status) => ({
      path: pageFile(folder, each, status),
      id: each.fingerprint,
      text: () => {
        const text = pages(each.name, each.fingerprint);
        return text === undefined ? undefined : new Map(pagesIn(text)).get(status);
      },
    })),
  );
}

export function pagesIn(text: string): readonly (readonly [status: string, body: string])[] {
  return JSON.parse(text);
}

export function pagesOf(loadBalancers: Iterable<LoadBalancer>): readonly ErrorPages[] {
  return [...loadBalancers].flatMap(({ listeners }) =>
    listeners.flatMap(({ errorPages }) => errorPages ?? []),
  );
}
