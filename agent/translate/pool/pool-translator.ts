// Translates the pools that routes send to: one for each Service, with a listener for each of its ports that a route uses. The
// Service's annotations for members hold here, too. Pure.

import type { BackendTlsPolicy } from '../../kubernetes/gateway/gateway-objects.ts';
import type { Service, ServicePort } from '../../kubernetes/objects.ts';
import type { Dependency, DesiredState } from '../../model/desired-state.ts';
import type {
  Listener,
  LoadBalancer,
  Member,
  MemberTls,
  OwnerKey,
  Pool,
  Problem,
} from '../../model/load-balancer.ts';
import { poolListener, serviceOfPool } from '../../model/names.ts';
import type { PortAddress } from '../../model/port-owners.ts';
import { type ReadAnnotations, readAnnotations } from '../annotations/annotations.ts';
import { healthMonitor } from '../service/health-monitor.ts';
import { type MemberClients, memberClients } from '../service/member-clients.ts';
import { usableMembers } from '../service/member-rules.ts';
import { membersFromEndpoints } from '../service/members.ts';
import { ejectionOf, loadBalancerOf, plainListener, plainPool } from '../service/plain-listener.ts';
import type { PoliciesView } from '../service/policy-clients.ts';
import { selectEndpoints } from '../service/select-endpoints.ts';
import { ALL_CLIENTS } from '../service/source-ranges.ts';
import { type CertificatesView, certificateOf, memberTlsOf } from '../service/tls.ts';
import { NO_PORTS, type RequestedPorts, type Translation, type Translator } from '../translate.ts';
import type { TranslateSettings } from '../translate-settings.ts';
import { joinedTls, judgeAskedTls } from './asked-tls.ts';
import { isMeantByMistake, judgePolicy, policyOf } from './backend-tls.ts';
import { poolProfile } from './pool-profile.ts';
import { routeSlices, type SlicesView } from './route-slices.ts';

/** The part of the store of objects that translation reads. */
export interface PoolView extends SlicesView, PoliciesView {
  service(key: string): Service | undefined;
  policiesOf(service: string): readonly BackendTlsPolicy[];
}

export interface PoolTranslatorOptions {
  readonly cluster: PoolView;
  /** The settings in force. */
  readonly settings: () => TranslateSettings;
  readonly certificates: CertificatesView;
  readonly desired: Pick<DesiredState, 'portOwners' | 'poolUses'>;
}

export class PoolTranslator implements Translator {
  readonly #options: PoolTranslatorOptions;

  constructor(options: PoolTranslatorOptions) {
    this.#options = options;
  }

  ports(): RequestedPorts {
    return NO_PORTS;
  }

  translate(key: OwnerKey): Translation {
    const { cluster, desired } = this.#options;
    const ports = desired.poolUses.portsOf(key);
    if (ports.length === 0) return { result: undefined, reads: [] };
    const name = serviceOfPool(key).service;
    const reads = new Set<Dependency>([`service ${name}`, `endpoints ${name}`, `policies ${name}`]);
    const service = cluster.service(name);
    if (service === undefined) return { result: undefined, reads: [...reads] };
    return { result: this.#loadBalancer(key, service, ports, reads), reads: [...reads] };
  }

  #loadBalancer(
    key: OwnerKey,
    service: Service,
    ports: readonly number[],
    reads: Set<Dependency>,
  ): LoadBalancer {
    const { settings } = this.#options;
    const annotations = readAnnotations(
      service.annotations,
      `Service ${service.key}`,
      settings().annotationDefaults,
    );
    const problems: Problem[] = [...annotations.problems];
    const listeners = ports.flatMap((number) => {
      const port = service.ports.find((each) => each.port === number && each.protocol === 'TCP');
      return port === undefined ? [] : [this.#listener(key, service, port, annotations, reads, problems)];
    });
    return loadBalancerOf(key, [], listeners, problems);
  }

  #listener(
    key: OwnerKey,
    service: Service,
    port: ServicePort,
    annotations: ReadAnnotations,
    reads: Set<Dependency>,
    problems: Problem[],
  ): Listener {
    const { values } = annotations;
    const { cluster, certificates } = this.#options;
    const { mode, httpVersion, isTls, isSticky, isHashed, isAsked, retry } = poolProfile(
      serviceOfPool(key).profile,
    );
    const policies = cluster.policiesOf(service.key);
    const policy = policyOf(service, port, policies);
    const judged = policy && judgePolicy(policy, certificates, reads);
    const annotated = memberTlsOf(service, port, annotations, certificates);
    for (const each of annotated.reads) reads.add(each);
    problems.push(...annotated.problems);
    const wanted = this.#options.desired.poolUses.tlsOf(key);
    const asked = wanted && judgeAskedTls(wanted, certificates, reads);
    const isClosed =
      (asked !== undefined && asked.tls === undefined) ||
      (policy === undefined
        ? !annotated.isServed || isMeantByMistake(service, port, policies)
        : judged?.tls === undefined);
    const found = isClosed ? [] : this.#members(service, port, reads, problems);
    const context = { cluster, settings: this.#options.settings(), reads };
    const ofPolicies = memberClients({ service, port, members: found, allowed: ALL_CLIENTS }, context);
    problems.push(...ofPolicies.problems);
    const tls = joinedTls(asked?.tls, judged?.tls ?? annotated.memberTls) ?? (isTls ? UNVERIFIED : undefined);
    const { namespace, name: serviceName } = service;
    const place = { name: poolListener(key, port.port), namespace, service: serviceName };
    return {
      ...plainListener({ ...port, ...place, portName: port.name, family: 'v4' }, values),
      reachedBy: 'routes',
      mode,
      pool: {
        ...plainPool(values),
        ...(isHashed && { algorithm: 'key-hash' as const }),
        // A member that hangs owes as few answers as the others, and not half of all.
        ...(isAsked && { algorithm: 'least-connections' as const }),
        persistence: service.affinitySeconds,
        monitor: healthMonitor(service, port, values, false),
        tls: tls && this.#withCertificate(key, tls, reads),
        httpVersion: mode === 'http' && (port.appProtocol === H2C || httpVersion === '2') ? '2' : '1.1',
        ...(isSticky && { cookie: COOKIE, cookieSecret: service.uid }),
        ...(retry && { retry }),
        proxyProtocol: values.proxyProtocol,
        memberConnectionLimit: values.memberConnectionLimit,
        ...ejectionOf(values, mode),
        members: ofPolicies.members,
        ...clientsOf(ofPolicies),
      },
    };
  }

  #withCertificate(key: OwnerKey, tls: MemberTls, reads: Set<Dependency>): MemberTls {
    const { certificates, desired } = this.#options;
    const secret = desired.poolUses.certificateOf(key);
    if (secret === undefined) return tls;
    reads.add(`secret ${secret}`);
    const { content } = certificates.pair(secret);
    return content === undefined ? tls : { ...tls, certificate: certificateOf(secret, content) };
  }

  /** Members of one family, because the endpoints of the other one are the same pods: IPv4 if there is any. */
  #members(
    service: Service,
    port: ServicePort,
    reads: Set<Dependency>,
    problems: Problem[],
  ): readonly Member[] {
    const { cluster, desired, settings } = this.#options;
    const slices = routeSlices(service, cluster);
    const family = slices.some((slice) => slice.family === 'v4' && slice.endpoints.length > 0) ? 'v4' : 'v6';
    const selection = selectEndpoints(slices, port, family, { zone: settings().zone, ignoreHints: false });
    const isListening = (place: PortAddress) => desired.portOwners.ownerOf(place) !== undefined;
    const { usable, refused } = usableMembers(
      membersFromEndpoints(selection),
      'TCP',
      settings(),
      isListening,
    );
    for (const { member, reason, isVip } of refused) {
      if (isVip) reads.add(`vip ${member.address}`);
      const message = `Cannot send to ${member.name} for port ${port.port}: ${reason}`;
      problems.push({ object: `Service ${service.key}`, reason: 'InvalidEndpoint', message });
    }
    return usable;
  }
}

/** Without the field if all clients are served. */
function clientsOf({ allowed: { v4 = [], v6 = [] } }: MemberClients): Pick<Pool, 'clients'> {
  return v4 === ALL_CLIENTS.v4 && v6 === ALL_CLIENTS.v6 ? {} : { clients: [...v4, ...v6] };
}

/** One name for all, so that HAProxy needs no section of its own for each. */
const COOKIE = 'HEADGATE';
const UNVERIFIED: MemberTls = { authority: undefined, serverName: '' };

/** KEP-3726: HTTP/2 without TLS. */
const H2C = 'kubernetes.io/h2c';
