// The nine places that say how a load balancer is served, each as a text.

import type { RunningAgent, TestHost } from '../support/host/agent.ts';
import type { Json } from '../support/kube/fake-api.ts';
import type { Kube } from '../support/kube/kube.ts';
import { servicePath } from '../support/kube/kube-objects.ts';
import type { Prometheus } from '../support/report/prometheus.ts';
import { readPage } from '../support/report/read-page.ts';

export interface World {
  readonly kube: Kube;
  readonly host: TestHost;
  readonly agent: RunningAgent;
  readonly prometheus: Prometheus;
}

export interface Subject {
  /** As in `headgate why`. */
  readonly key: string;
  /** Lines of the log before this one are from before the fault. */
  readonly logFrom: number;
}

export const PLACE_NAMES = [
  'why',
  'list',
  'status',
  'page',
  'metrics',
  'alerts',
  'conditions',
  'events',
  'log',
] as const;
export type PlaceName = (typeof PLACE_NAMES)[number];

const ROUTES = '/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes';

type Look = (world: World, subject: Subject) => Promise<string>;

export const places: Readonly<Record<PlaceName, Look>> = {
  why: async ({ host }, { key }) => {
    const { verdict, reasons } = await host.why(key);
    return [verdict, ...reasons].map((each, at) => (at === 0 ? each : `${verdict}: ${each}`)).join('\n');
  },
  list: async ({ host }) => (await host.command('list')).stdout,
  status: async ({ host }) => (await host.command('status')).stdout,
  page: async ({ agent }, { key }) => {
    const { summary, list, detail } = await readPage(agent.url, `open=${encodeURIComponent(key)}`);
    const row = list.rows.find((each) => each.key === key);
    const fault = summary.fault === '' ? [] : [`fault: ${summary.fault}`];
    const broken = summary.broken
      .filter((each) => each.key === key)
      .map(({ why }) => `first in the list of what is broken: ${why}`);
    const members = `${row?.ready} of ${row?.members} members, ${row?.problems} problems`;
    return [`${row?.verdict}, ${members}`, ...broken, ...(detail?.reasons ?? []), ...fault].join('; ');
  },
  metrics: async ({ agent }, { key }) => {
    const { text } = await agent.get('/metrics');
    const [namespace, name] = (key.split(':').at(-1) ?? '').split('/');
    const ofKey = (line: string) =>
      line.includes(`namespace="${namespace}"`) && line.includes(`service="${name}"`);
    return text.split('\n').filter(ofKey).join('\n');
  },
  alerts: async ({ prometheus }, { key }) => {
    const [, name = ''] = key.split('/');
    const all = await prometheus.query('ALERTS');
    return all
      .filter(({ metric }) => metric.service === undefined || metric.service === name)
      .map(({ metric: { alertname, alertstate, reason = '' } }) => `${alertname} ${alertstate} ${reason}`)
      .join('\n');
  },
  conditions: async ({ kube }, { key }) => {
    const [, name = ''] = key.split('/');
    if (!key.startsWith('gateway:'))
      return conditionsOf((await kube.must('GET', servicePath('default', name))).status?.conditions);
    const { status } = await kube.must('GET', `${ROUTES}/api`);
    return conditionsOf(status?.parents?.[0]?.conditions);
  },
  events: async ({ kube }, { key }) => {
    const name = key.startsWith('gateway:') ? 'api' : (key.split('/')[1] ?? '');
    const selector = `fieldSelector=involvedObject.name=${name}`;
    const { items } = await kube.must('GET', `/api/v1/namespaces/default/events?${selector}`);
    return items.map(({ type, reason, message }: Json) => `${type} ${reason} ${message}`).join('\n');
  },
  log: async ({ agent }, { logFrom }) =>
    agent.log
      .slice(logFrom)
      .map(({ level, time: _, ...line }) => `${level} ${JSON.stringify(line)}`)
      .join('\n'),
};

function conditionsOf(all: readonly Json[] = []): string {
  return all
    .map(
      ({ type, status, reason, message }) =>
        `${String(type).replace('headgate.io/', '')}=${status} ${reason} ${message}`,
    )
    .join('\n');
}
