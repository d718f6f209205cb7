// The part of a section that looks the rows of a listener's routes up for each request. Pure, except that it reads the templates at
// the start.

import { loadTemplate, type View } from '../../base/template.ts';
import type { Listener } from '../../model/load-balancer.ts';
import { refusalWords } from '../routes/refusals.ts';
import { AUTH_LUA, ERRORS_LUA, GROUPS_LUA, JWT_LUA, LUA } from '../routes/route-files.ts';
import { MAX_ELEMENTS } from '../routes/unservable.ts';
import { answerWords, errorPageViews, pageWords } from './error-pages.ts';
import type { RenderContext } from './render-context.ts';
import { tokenKeyViews } from './token-key-files.ts';

const templates = {
  routes: loadTemplate('haproxy/routes'),
  tlsSection: loadTemplate('haproxy/tls-section'),
  connectionRoutes: loadTemplate('haproxy/connection-routes'),
};
/** For the structure of a file. */
export const routeTemplates = Object.values(templates)
  .map(({ text }) => text)
  .join(LUA + GROUPS_LUA + AUTH_LUA + ERRORS_LUA + JWT_LUA);

/** A wildcard covers at most one label less. */
const MOST_LABELS = 12;
/** Wider hostnames to which a request falls back. */
const MOST_WIDER = 3;
const ORIGIN_LABELS = 5;
/** The first for statuses from 100 to 199, and so on; in the order of their frequency. */
const STATUS_COUNTERS = [1, 2, 3, 4, 0].map((counter) => ({
  counter,
  from: counter * 100 + 100,
  to: counter * 100 + 199,
}));

/** A view of each line, because lines do not see the values around them. */
function linesOf(name: string, folder: string, from: number, to: number): readonly View[] {
  return Array.from({ length: to - from + 1 }, (_, at) => ({ name, folder, number: from + at }));
}

/** What the rules of routes must know before the first request; '' where one connection is as good as another. */
export function tlsSectionText(listener: Listener, { routes: folder }: RenderContext): string {
  if (!detectsMisdirected(listener)) return '';
  const { name } = listener;
  return templates.tlsSection({ name, folder, labels: linesOf(name, folder, 3, MOST_LABELS) }).trimEnd();
}

function detectsMisdirected({ routing, tls }: Pick<Listener, 'routing' | 'tls'>): boolean {
  return tls !== undefined && routing?.kind === 'http' && routing.detectMisdirected;
}

type RoutedPart = Pick<
  Listener,
  | 'name'
  | 'labels'
  | 'routing'
  | 'tls'
  | 'log'
  | 'userLists'
  | 'tokenKeys'
  | 'asksServers'
  | 'replacesErrors'
  | 'errorPages'
>;

/** '' without routes. `ended`: of a dispatcher, the backend for TLS that is not passed through. */
export function routesText(
  {
    name,
    labels: { namespace },
    routing,
    tls,
    log,
    userLists = [],
    tokenKeys,
    asksServers,
    replacesErrors,
    errorPages,
  }: RoutedPart,
  {
    routes: folder,
    keys,
    pages,
    dotSegments = 'reject',
    ambiguousPaths = 'reject-where-guarded',
    countsRoutes,
  }: RenderContext,
  ended = '',
): string {
  if (routing === undefined) return '';
  const lines = (from: number, to: number): readonly View[] => linesOf(name, folder, from, to);
  const labels = lines(3, MOST_LABELS);
  if (routing.kind !== 'http') {
    const isTls = routing.kind === 'tls';
    const tlsFlags = { isPassed: isTls && tls === undefined, isEnded: isTls && tls !== undefined };
    const isDispatcher = ended !== '';
    return templates
      .connectionRoutes({ name, folder, labels, isTls, ...tlsFlags, isDispatcher, ended })
      .trimEnd();
  }
  const answers = answerWords({ errorPages }, pages);
  const guardsAmbiguous = ambiguousPaths === 'reject-where-guarded';
  const by = refusalWords(name, countsRoutes);
  return templates
    .routes({
      name,
      folder,
      labels,
      rejectsDots: dotSegments === 'reject',
      normalizesDots: dotSegments === 'normalize',
      refusesAmbiguous: ambiguousPaths === 'reject',
      guardsAmbiguous,
      hasUsers: userLists.length > 0,
      ...tokenKeyViews({ tokenKeys }, keys),
      asksServers: asksServers === true,
      replacesErrors: replacesErrors === true,
      classPages: errorPageViews({ errorPages }, pages),
      detectsMisdirected: detectsMisdirected({ routing, tls }),
      scheme: schemeOf({ tls }),
      widers: lines(1, MOST_WIDER).map((line) => ({
        ...line,
        guardsAmbiguous,
        ambiguousAnswer: answers.ambiguousAnswer ?? '',
        byAmbiguousPath: by.byAmbiguousPath ?? '',
      })),
      elements: lines(0, MAX_ELEMENTS).map((line) => ({ ...line, field: Number(line.number) + 2 })),
      originLabels: lines(2, ORIGIN_LABELS),
      redirects: ['301', '302', '303', '307', '308'],
      answers: ['403', '404', '503'].map((status) => ({
        status,
        page: pageWords(pages, errorPages, status),
        byAnswer: by.byAnswer ?? '',
      })),
      ...answers,
      ...by,
      noPool: pageWords(pages, errorPages, '500'),
      countsRoutes,
      namespace,
      logsRules: log !== 'none',
      counters: countsRoutes ? STATUS_COUNTERS : [],
    })
    .trimEnd();
}

export function schemeOf({ tls }: Pick<Listener, 'tls'>): string {
  return tls === undefined ? 'http' : 'https';
}
