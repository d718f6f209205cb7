// Metrics of the objects that the agent has read, and of their load balancers: operating status, problems.

import type { ProblemReason } from '../../agent/model/load-balancer.ts';
import { escaped } from '../scrape/exposition.ts';
import type { MetricRegistry } from './metric-registry.ts';

export interface ObjectState {
  /** By kind. */
  readonly objects: Readonly<Record<string, number>>;
  readonly loadBalancers: number;
  readonly ignoredServices: number;
  /** Secrets with certificates that load balancers ask for; milliseconds since the epoch. */
  readonly certificates: readonly { readonly name: string; readonly expires: number }[];
  /** By reason. */
  readonly problems: ReadonlyMap<string, number>;
  /** Counts by kind and operating status. */
  readonly operating: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** Each reason has a sample, even if it is 0: an alert needs a series, and must see that the problem has ended. */
const REASONS: Readonly<Record<ProblemReason, 0>> = {
  InvalidFile: 0,
  InvalidObject: 0,
  DuplicateObject: 0,
  Misspelled: 0,
  KindIgnored: 0,
  InvalidAnnotation: 0,
  InvalidSourceRange: 0,
  ClosedByPolicy: 0,
  InvalidAddress: 0,
  AddressPending: 0,
  AddressInUse: 0,
  AddressUnavailable: 0,
  AddressNotAnnounced: 0,
  AddressConflict: 0,
  AddressNotInPool: 0,
  AddressNotAllowed: 0,
  AddressOutOfPool: 0,
  AddressNotMovable: 0,
  PoolsOverlap: 0,
  NotPermitted: 0,
  ProvisionerFailed: 0,
  ProtocolNotServed: 0,
  AnswersMissing: 0,
  EgressNotServed: 0,
  EgressConflict: 0,
  EgressPodRefused: 0,
  NodePortMissing: 0,
  InvalidEndpoint: 0,
  InvalidListener: 0,
  InvalidRoute: 0,
  InvalidPolicy: 0,
  InvalidClass: 0,
  RouteShadowed: 0,
  AnnotationIgnored: 0,
  OptionIgnored: 0,
  ProtectionMissing: 0,
  ShareExceeded: 0,
  AllMembersDown: 0,
  MembersFail: 0,
  MonitorNotUsed: 0,
  ConfigurationRejected: 0,
  CertificateMissing: 0,
  InvalidCertificate: 0,
  InvalidUsers: 0,
  InvalidKeys: 0,
  InvalidErrorPages: 0,
  CertificateExpired: 0,
  BgpSessionDown: 0,
  PassingFaulty: 0,
  BgpRoutesHeldBack: 0,
  TwoMasters: 0,
};

export function addObjectMetrics(registry: MetricRegistry, state: () => ObjectState): void {
  registry.gauge('headgate_objects', 'Objects that the agent has read', ['kind'], () =>
    Object.entries(state().objects).map(([kind, count]) => [{ kind }, count]),
  );
  registry.number(
    'headgate_load_balancers',
    'Load balancers in the model, served or not: of Services, Gateways and IngressClasses, and pools of routes',
    () => state().loadBalancers,
  );
  registry.number(
    'headgate_ignored_services',
    'Services of other load balancers, which Headgate does not serve',
    () => state().ignoredServices,
  );
  registry.gauge(
    'headgate_operating_status',
    'Load balancers, listeners, pools and members, by operating status',
    ['kind', 'status'],
    () =>
      Object.entries(state().operating).flatMap(([kind, counts]) =>
        Object.entries(counts).map(([status, count]) => [{ kind, status }, count] as const),
      ),
  );
  registry.table(
    'headgate_certificate_expiry_seconds',
    'When a certificate of a listener, or one of its chain, expires: seconds since 1970',
    () =>
      state().certificates.map(({ name, expires }) => {
        const [namespace = '', secret = ''] = escaped(name).split('/');
        return { labels: `namespace="${namespace}",secret="${secret}"`, sample: expires / 1000 };
      }),
  );
  registry.gauge('headgate_problems', 'Problems that users must fix, by reason', ['reason'], () =>
    Object.entries({ ...REASONS, ...Object.fromEntries(state().problems) }).map(([reason, count]) => [
      { reason },
      count,
    ]),
  );
}
