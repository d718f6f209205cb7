// The seven faults of sre-faults.ts, and a load balancer beside them that is well: what clients meet, and what each place must say.

import type { PlaceName } from './walk-places.ts';

export interface Fault {
  readonly what: string;
  /** As in `headgate why`. */
  readonly key: string;
  readonly address: string;
  readonly memberPort: number;
  /** All that a client gets in its last attempts, each once, in the order of letters. */
  readonly clients: RegExp;
  /** It has no fault: what is said of it counts at the end. */
  readonly isWell?: true;
  readonly says: Readonly<Record<PlaceName, RegExp>>;
}

export const faults: readonly Fault[] = [
  {
    what: 'Nothing is wrong',
    key: 'default/good',
    address: '10.9.2.8',
    memberPort: 9008,
    clients: /^answer$/,
    isWell: true,
    says: {
      why: /^served$/,
      list: /^default\/good .* 3\/3 .* served .*/m,
      status: /^(?![\s\S]*default\/good)Headgate .*/,
      page: /^served, 3 of 3 members, 0 problems$/,
      metrics: /^(?![\s\S]*_verdict\{).*/,
      alerts: /^(?![\s\S]*Headgate(MembersFail|MembersDown|PoolDown|NotServed|ConnectErrors|Redispatches) )/,
      conditions: /Programmed=True (?!NoMembers).*/,
      events: /^(?![\s\S]*Warning).*/,
      log: /^(?![\s\S]*default\/good)/,
    },
  },
  {
    what: 'All members are dead',
    key: 'default/dead',
    address: '10.9.2.1',
    memberPort: 9001,
    clients: /^closed$/,
    says: {
      why: /members fail: All that clients tried at TCP port 8080.*/,
      list: /^default\/dead .* members fail.*/m,
      status: /Service default\/dead: All that clients tried.*/,
      page: /^members fail, .*first in the list of what is broken.*/,
      metrics: /^headgate_load_balancer_verdict\{.*verdict="members fail".*\} 1$/m,
      alerts: /HeadgateMembersFail \w+/,
      conditions: /Healthy=False Error.*/,
      events: /Warning MembersFail.*/,
      log: /warn .*"Service default\/dead".*MembersFail.*/,
    },
  },
  {
    what: 'One of three members is dead',
    key: 'default/one',
    address: '10.9.2.2',
    memberPort: 9002,
    clients: /^answer$/,
    says: {
      why: /served: Clients get an answer at TCP port 8080 .* only because other members take over.*/,
      list: /^default\/one .* 2\/3 .*/m,
      status: /Service default\/one: Clients get an answer.*/,
      page: /^served, 2 of 3 members, 1 problems; Clients get an answer.*/,
      metrics: /^headgate_pool_redispatches_total\{.*\} [1-9]\d*$/m,
      alerts: /HeadgateRedispatches \w+/,
      conditions: /Healthy=False Degraded.*/,
      events: /Warning MembersFail.*/,
      log: /warn .*"Service default\/one".*MembersFail.*/,
    },
  },
  {
    what: 'No pods',
    key: 'default/empty',
    address: '10.9.2.3',
    memberPort: 9003,
    clients: /^refused$/,
    says: {
      why: /no ready member: TCP port 8080.* has no member.*/,
      list: /^default\/empty .* no ready member.*/m,
      status: /OFFLINE .*default\/empty.*|default\/empty.*OFFLINE.*/,
      page: /^no ready member, .*first in the list of what is broken.*/,
      metrics: /^headgate_load_balancer_verdict\{.*verdict="no ready member".*\} 1$/m,
      alerts: /HeadgatePoolDown \w+/,
      conditions: /Programmed=True NoMembers.*/,
      events: /Warning NoMembers.*/,
      log: /warn .*"empty".*A port has no ready member.*/,
    },
  },
  {
    what: 'A route has a missing backend',
    key: 'gateway:default/edge',
    address: '10.9.2.4',
    memberPort: 9004,
    clients: /^500, answer$/,
    says: {
      why: /served in part: HTTPRoute default\/api: Cannot serve all of it \(BackendNotFound\).*/,
      list: /^gateway:default\/edge .* served in part.*/m,
      status: /HTTPRoute default\/api: Cannot serve all of it.*/,
      page: /^served in part, .*first in the list of what is broken.*/,
      metrics: /^headgate_load_balancer_verdict\{.*verdict="served in part".*\} 1$/m,
      alerts: /Headgate(Http|Route)Errors \w+/,
      conditions: /ResolvedRefs=False BackendNotFound.*/,
      events: /Warning InvalidRoute.*/,
      log: /warn .*HTTPRoute default\/api.*/,
    },
  },
  {
    what: 'Nobody announces the address',
    key: 'default/nobody',
    address: '10.9.2.5',
    memberPort: 9005,
    clients: /^silence$/,
    says: {
      why: /not served: No client reaches 10\.9\.2\.5.*/,
      list: /^default\/nobody .* not served.*/m,
      status: /Service default\/nobody: No client reaches.*/,
      page: /^not served, .*first in the list of what is broken.*/,
      metrics: /^headgate_load_balancer_verdict\{.*verdict="not served".*\} 1$/m,
      alerts: /HeadgateAddressUnavailable \w+/,
      conditions: /Programmed=False AddressUnavailable.*/,
      events: /Warning AddressUnavailable.*/,
      log: /warn .*AddressUnavailable.*/,
    },
  },
  {
    what: 'All members fail their health monitor',
    key: 'default/down',
    address: '10.9.2.7',
    memberPort: 9007,
    clients: /^closed$/,
    says: {
      why: /members down: Each of the 3 ready members of TCP port 8080.*/,
      list: /^default\/down .* members down.*/m,
      status: /Service default\/down: Each of the 3 ready members.*/,
      page: /^members down, .*first in the list of what is broken.*/,
      metrics: /^headgate_load_balancer_verdict\{.*verdict="members down".*\} 1$/m,
      alerts: /Headgate(PoolDown|MembersFail|MembersDown) \w+/,
      conditions: /Healthy=False Error.*/,
      events: /Warning AllMembersDown.*/,
      log: /warn .*"Service default\/down".*AllMembersDown.*/,
    },
  },
  {
    what: 'nft ends at each start',
    key: 'default/udp',
    address: '10.9.2.6',
    memberPort: 9006,
    // The kernel limits its ICMP errors.
    clients: /^(refused|silence|refused, silence)$/,
    says: {
      why: /not served: .+/,
      list: /^default\/udp .* not served.*/m,
      status: /Fault: .*nft.*/,
      page: /^not served, .*first in the list of what is broken.*/,
      metrics: /^headgate_load_balancer_verdict\{.*verdict="not served".*\} 1$/m,
      alerts: /HeadgateNotServed \w+/,
      conditions: /Programmed=False .+/,
      events: /Warning .+/,
      log: /(warn|error) .*nft.*/,
    },
  },
];
